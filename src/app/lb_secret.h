// SPDX-License-Identifier: Apache-2.0
// The secret that a balancer and its instances' agents share, from a file or the environment.
#pragma once

#include <string>

#include "base/result.h"

namespace ballast::app {

// From the file if one is named, else from BALLAST_LB_SECRET; without the end of line. Fails when
// there is none or it is too short to be one; the error names where it came from.
Result<std::string> lb_secret(const std::string& file);

}  // namespace ballast::app
