// SPDX-License-Identifier: Apache-2.0
// What went to each instance, since the packet path was loaded and in the last second.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "loader/lb_program.h"

namespace ballast::lb {

struct Rates {
  double packets = 0;  // a second
  double bytes = 0;
  double connections = 0;
};

class Traffic {
 public:
  explicit Traffic(const loader::LbProgram& program) : program_(program) {}

  // About once a second.
  Result<> sample(const std::vector<uint32_t>& instances, Nanos now);

  bl_traffic total(uint32_t instance) const;
  Rates rates(uint32_t instance) const;

 private:
  struct Sample {
    bl_traffic total{};
    Rates rates{};
  };
  const loader::LbProgram& program_;
  std::map<uint32_t, Sample> samples_;
  Nanos sampled_at_ = 0;
};

}  // namespace ballast::lb
