// SPDX-License-Identifier: Apache-2.0
// A deterministic world around the real Home and Node: a shard, a network that loses, repeats and
// delays, clocks that drift, processes that pause and are replaced, readers and writers. One seed
// is one history. For tests only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "cache/home.h"
#include "cache/node.h"

namespace ballast::cache::sim {

inline constexpr size_t kKeys = 3;
inline constexpr size_t kBypassed = 2;  // this key is also written past the home

struct Plan {
  Nanos length = 800 * kMillisecond;
  Nanos lease = 100 * kMillisecond;
  bool faults = true;
};

// What went wrong first, empty if nothing did; and how much was tried.
struct Outcome {
  std::string violation;
  uint64_t events = 0;
  uint64_t reads = 0;
  uint64_t hits = 0;
  uint64_t writes = 0;
  uint64_t takeovers = 0;
};

Outcome run(uint64_t seed, const Plan& plan);

}  // namespace ballast::cache::sim
