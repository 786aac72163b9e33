// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <system_error>

namespace ballast {

Unexpected fail_errno(const std::string& what, int sys_errno) {
  Error error{ErrorCode::kSystem,
              what + ": " + std::error_code(sys_errno, std::generic_category()).message(), true,
              sys_errno};
  return Unexpected(std::move(error));
}

}  // namespace ballast
