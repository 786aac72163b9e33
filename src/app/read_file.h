// SPDX-License-Identifier: Apache-2.0
// A whole small file at once: configuration, passwords, certificates.
#pragma once

#include <string>

#include "base/result.h"

namespace ballast::app {

// At most 1 MiB. The error says why it cannot be read, without the path.
Result<std::string> read_file(const std::string& path);

}  // namespace ballast::app
