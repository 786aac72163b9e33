// SPDX-License-Identifier: Apache-2.0
// The secret that a balancer and its instances' agents share, from a file or the environment.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace ballast::app {

// From the file if one is named, else from BALLAST_LB_SECRET; one a line, one to four. The first
// is asked with, an agent answers to any: so a secret can be changed without an answer lost. Fails
// when there is none, or one is short or has blanks around it; the error names where it came from,
// for a file by `source`, which says where the file was named.
Result<std::vector<std::string>> lb_secrets(const std::string& file,
                                            const std::string& source = "--secret-file");

}  // namespace ballast::app
