// SPDX-License-Identifier: Apache-2.0
// What went to each instance and to each VIP: in all, and in the last second.
#pragma once

#include <cstdint>
#include <map>
#include <string>
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

struct Flowed {
  bl_traffic total{};
  Rates rates;
};

class Traffic {
 public:
  explicit Traffic(const loader::LbProgram& program) : program_(program) {}

  struct Place {
    uint32_t instance;
    std::string vip;  // its name
  };

  // An index that is another instance's from now on: it counts from 0.
  Result<> begin(uint32_t instance);
  // About once a second. An instance's total lasts as long as the packet path's tables; what a
  // VIP's had stays in the VIP's total when they go.
  Result<> sample(const std::vector<Place>& places, Nanos now);

  Flowed of_instance(uint32_t instance) const;
  Flowed of_vip(const std::string& vip) const;

 private:
  const loader::LbProgram& program_;
  std::map<uint32_t, Flowed> instances_;
  std::map<std::string, Flowed> vips_;
  Nanos sampled_at_ = 0;
};

}  // namespace ballast::lb
