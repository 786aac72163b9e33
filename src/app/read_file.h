// SPDX-License-Identifier: Apache-2.0
// A whole small file at once: configuration, passwords, certificates.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace ballast::app {

// At most so many bytes, else kLimit. The error says why it cannot be read, without the path.
Result<std::string> read_file(const std::string& path, size_t most_bytes = 1 << 20);

}  // namespace ballast::app
