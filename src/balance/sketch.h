// SPDX-License-Identifier: Apache-2.0
// Count-min sketch with conservative update (Cormode and Muthukrishnan 2005; Estan and Varghese
// 2002) and decay by halving: frequencies of all keys in fixed memory, never below the true count.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "balance/hash.h"

namespace ballast::balance {

class Sketch {
 public:
  // `width` counters of 32 bits in each of 4 rows, rounded up to a power of two. The estimate
  // exceeds the truth by e / width of the total weight with probability below e^-4.
  explicit Sketch(size_t width = 16384, uint64_t seed = 1);

  // Adds `weight` to the key's count and returns the new estimate.
  uint32_t add(uint64_t key_hash, uint32_t weight = 1);
  // Makes the key's estimate at least `count`.
  void raise(uint64_t key_hash, uint32_t count);
  uint32_t estimate(uint64_t key_hash) const;
  // Halves every count, rounding down. O(width).
  void halve();

 private:
  static constexpr size_t kRows = 4;
  using Cells = std::array<size_t, kRows>;
  Cells cells(uint64_t key_hash) const;

  size_t mask_;
  uint64_t seed_;
  std::vector<uint32_t> counts_;  // row after row
};

}  // namespace ballast::balance
