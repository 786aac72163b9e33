// SPDX-License-Identifier: Apache-2.0
// An assertion for programmers' mistakes that stays on in release builds.
#pragma once

#include <cstdio>
#include <cstdlib>

#define BALLAST_CHECK(condition)                                                         \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
