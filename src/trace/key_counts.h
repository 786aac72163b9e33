// SPDX-License-Identifier: Apache-2.0
// Counts keys in bounded memory: each one exactly up to so many distinct keys, from there on the
// most frequent by Space-Saving. Keys are told apart by 64 bits of their hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "balance/space_saving.h"
#include "trace/workload.h"

namespace ballast::trace {

// How many distinct values a stream of hashes holds, from the k smallest of them (Bar-Yossef et
// al. 2002, Beyer et al. 2007): exact below k, then with a standard error of 1 / sqrt(k - 2).
class DistinctHashes {
 public:
  void add(uint64_t hash);
  double estimate() const;
  double error() const;  // of the estimate, absolute

 private:
  static constexpr size_t kKept = 16'384;
  std::vector<uint64_t> heap_;  // the largest first
  std::unordered_set<uint64_t> kept_;
};

class KeyCounts {
 public:
  // At least 1.
  explicit KeyCounts(size_t most_keys);

  void add(std::string_view key, bool write, uint64_t count = 1);

  uint64_t requests() const { return requests_; }
  // Fills the fields of the workload down to distinct_error.
  void finish(Workload& workload) const;

 private:
  struct Exact {
    uint64_t count = 0;
    uint64_t writes = 0;
    uint16_t slot = kNoSlot;
  };
  struct Name {
    std::string text = {};
    uint64_t count = 0;
    uint16_t slot = kNoSlot;
  };

  uint64_t count_exactly(uint64_t hash, std::string_view key, bool write, uint64_t count);
  void go_over_to_summary();
  void note_name(uint64_t hash, std::string_view key, uint64_t count);

  size_t most_keys_;
  uint64_t requests_ = 0;
  std::unordered_map<uint64_t, Exact> exact_;
  std::unique_ptr<balance::SpaceSaving> summary_;  // once there are too many
  DistinctHashes distinct_;
  // Names of the keys whose count was at least least_named_ when it last rose.
  std::unordered_map<uint64_t, Name> names_;
  uint64_t least_named_ = 1;
};

}  // namespace ballast::trace
