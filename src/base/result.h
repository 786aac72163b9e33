// SPDX-License-Identifier: Apache-2.0
// The one error type and the one result type. Nothing in Ballast throws; what can fail returns
// Result.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace ballast {

enum class ErrorCode {
  kInvalid,      // wrong input: usage, configuration, message
  kUnavailable,  // a peer is down or unreachable
  kTimeout,
  kLimit,   // a configured bound was reached
  kSystem,  // a system call failed; see Error::sys_errno
  kState,   // not possible in the present state
};

struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string message;  // one sentence an operator can act on
  bool retryable = false;
  int sys_errno = 0;
};

template <typename T = void>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

using Unexpected = tl::unexpected<Error>;

inline Unexpected fail(ErrorCode code, std::string message) {
  return Unexpected(Error{code, std::move(message), code == ErrorCode::kUnavailable, 0});
}

// `what` names the failed call and its object, e.g. "bind 127.0.0.1:6379".
Unexpected fail_errno(const std::string& what, int sys_errno);

}  // namespace ballast
