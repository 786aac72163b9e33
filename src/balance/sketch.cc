// SPDX-License-Identifier: Apache-2.0
#include "balance/sketch.h"

#include <algorithm>
#include <bit>

namespace ballast::balance {

Sketch::Sketch(size_t width, uint64_t seed)
    : mask_(std::bit_ceil(std::max<size_t>(width, 2)) - 1),
      seed_(seed),
      counts_(kRows * (mask_ + 1)) {}

Sketch::Cells Sketch::cells(uint64_t key_hash) const {
  // Two hashes give four rows by double hashing (Kirsch and Mitzenmacher 2006); the step is odd.
  const uint64_t h = mix(key_hash, seed_);
  const uint64_t step = (h >> 32) | 1;
  Cells cells;
  for (size_t row = 0; row < kRows; ++row) {
    cells[row] = row * (mask_ + 1) + ((h + row * step) & mask_);
  }
  return cells;
}

uint32_t Sketch::add(uint64_t key_hash, uint32_t weight) {
  const Cells at = cells(key_hash);
  uint32_t least = UINT32_MAX;
  for (const size_t cell : at) least = std::min(least, counts_[cell]);
  const uint32_t count = least > UINT32_MAX - weight ? UINT32_MAX : least + weight;
  for (const size_t cell : at) counts_[cell] = std::max(counts_[cell], count);
  return count;
}

void Sketch::raise(uint64_t key_hash, uint32_t count) {
  for (const size_t cell : cells(key_hash)) counts_[cell] = std::max(counts_[cell], count);
}

uint32_t Sketch::estimate(uint64_t key_hash) const {
  uint32_t least = UINT32_MAX;
  for (const size_t cell : cells(key_hash)) least = std::min(least, counts_[cell]);
  return least;
}

void Sketch::halve() {
  for (uint32_t& count : counts_) count >>= 1;
}

}  // namespace ballast::balance
