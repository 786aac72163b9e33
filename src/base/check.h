// SPDX-License-Identifier: Apache-2.0
// An assertion for programmers' mistakes that stays on in release builds.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace ballast {

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace ballast

#define BALLAST_CHECK(condition)           \
  (__builtin_expect(!!(condition), 1) != 0 \
       ? static_cast<void>(0)              \
       : ::ballast::check_failed(__FILE__, __LINE__, #condition))
