// SPDX-License-Identifier: Apache-2.0
// The secret that a balancer and its instances' agents share, from a file or the environment.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace ballast::app {

// From the file if one is named, else from BALLAST_LB_SECRET; one a line, at least one. The first
// is asked with, an agent answers to any: so a secret can be changed without an answer lost. Fails
// when there is none or one is too short; the error names where it came from.
Result<std::vector<std::string>> lb_secrets(const std::string& file);

}  // namespace ballast::app
