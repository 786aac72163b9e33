// SPDX-License-Identifier: Apache-2.0
// The packet path on its interfaces: attached when the process starts, taken over from a former
// process where that one left it there.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "loader/lb_program.h"
#include "model/lb.h"

namespace ballast::lb {

struct Attached {
  std::string interface;
  uint32_t ifindex = 0;
  bool is_native = false;
  bool is_taken_over = false;
  loader::Attachment attachment = {};
};

// All of settings.interfaces or none. Without settings.keep they end with this process. kInvalid
// names an interface that is not there; kSystem one to which nothing can be attached.
Result<std::vector<Attached>> attach_all(const loader::LbProgram& program,
                                         const model::LbSettings& settings);

}  // namespace ballast::lb
