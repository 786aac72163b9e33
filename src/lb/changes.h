// SPDX-License-Identifier: Apache-2.0
// What is different between two lists of VIPs, in words for an operator: one change a line.
#pragma once

#include <string>
#include <vector>

#include "model/lb.h"

namespace ballast::lb {

// Both completed (model::complete). VIPs are the same by address, port and protocol, instances by
// address and port. E.g. "vip web: + instance b (10.0.0.2)".
std::vector<std::string> changes(const std::vector<model::Vip>& before,
                                 const std::vector<model::Vip>& after);

}  // namespace ballast::lb
