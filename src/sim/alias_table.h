// SPDX-License-Identifier: Apache-2.0
// Draws from any finite distribution in O(1): Walker's alias method in Vose's exact form, "A linear
// algorithm for generating random numbers with a given distribution", IEEE TSE 17(9), 1991.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ballast::sim {

class AliasTable {
 public:
  // Weights >= 0, not all zero, fewer than 2^31. Probabilities are exact to 2^-32 of one entry's.
  explicit AliasTable(const std::vector<double>& weights);

  // `draw`: 64 uniform bits. The upper half chooses the entry, the lower one entry or alias.
  uint32_t pick(uint64_t draw) const {
    const Entry& entry = entries_[((draw >> 32) * entries_.size()) >> 32];
    return static_cast<uint32_t>(draw) < entry.keep ? entry.own : entry.alias;
  }

 private:
  struct Entry {
    uint32_t keep = UINT32_MAX;
    uint32_t own = 0;
    uint32_t alias = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace ballast::sim
