// SPDX-License-Identifier: Apache-2.0
// What a trace says of a workload: how often each key was asked for, how, and in what time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace ballast::trace {

inline constexpr uint16_t kNoSlot = 0xffff;

struct KeyCount {
  uint64_t hash = 0;    // balance::key_hash of the key
  uint64_t count = 0;   // requests; the true number is in [count - error, count]
  uint64_t error = 0;   // 0 while all keys are counted
  uint64_t writes = 0;  // of those; not known where there is an error
  uint16_t slot = kNoSlot;
};

struct Workload {
  std::string form;            // "keys", "key counts", "monitor", "capture"
  std::vector<KeyCount> keys;  // the most frequent first; if not `exact` those known well enough
  // Of the first few thousand keys, in their order; a long one is cut; empty where not known.
  std::vector<std::string> names;
  uint64_t requests = 0;    // to keys, each key of a command being one
  bool exact = true;        // every key was counted
  uint64_t most_error = 0;  // no key outside `keys` has a count above this, if not exact
  double distinct = 0;
  double distinct_error = 0;  // standard error, 0 when counted

  bool kinds_known = false;  // the three numbers below
  uint64_t kept_reads = 0;   // of commands whose replies may be kept as copies
  uint64_t other_reads = 0;
  uint64_t writes = 0;

  bool times_known = false;   // the three numbers below
  double seconds = 0;         // from the first to the last request
  double busiest_second = 0;  // requests in it
  Nanos first = 0;            // wall time

  std::vector<std::string> notes;  // what was left out or could not be read
};

}  // namespace ballast::trace
