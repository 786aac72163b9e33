// SPDX-License-Identifier: Apache-2.0
// Time as one integer: nanoseconds of CLOCK_BOOTTIME, which counts a suspended machine and never
// steps. Pure code takes a Nanos argument; only io/ and app/ read the clock.
#pragma once

#include <time.h>

#include <cstdint>

namespace ballast {

using Nanos = int64_t;

inline constexpr Nanos kMicrosecond = 1'000;
inline constexpr Nanos kMillisecond = 1'000'000;
inline constexpr Nanos kSecond = 1'000'000'000;

inline Nanos now_ns() {
  timespec ts;
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return static_cast<Nanos>(ts.tv_sec) * kSecond + ts.tv_nsec;
}

}  // namespace ballast
