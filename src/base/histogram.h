// SPDX-License-Identifier: Apache-2.0
// A log-linear histogram of non-negative int64 values, mostly latencies in nanoseconds: exact below
// 256, above it buckets of 1/128 of their octave. Fixed memory (57 KiB), no allocation on record.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ballast {

class Histogram {
 public:
  Histogram() : counts_(kBuckets) {}

  // Negative values count as 0.
  void record(int64_t value, uint64_t times = 1) {
    if (value < 0) value = 0;
    if (times == 0) return;
    counts_[bucket(static_cast<uint64_t>(value))] += times;
    count_ += times;
    sum_ += static_cast<unsigned __int128>(value) * times;
    if (value > max_) max_ = value;
    if (value < min_) min_ = value;
  }
  void merge(const Histogram& other);
  void clear() { *this = Histogram(); }

  uint64_t count() const { return count_; }
  int64_t max() const { return max_; }                    // exact; 0 when empty
  int64_t min() const { return count_ == 0 ? 0 : min_; }  // exact; 0 when empty
  double mean() const;                                    // exact but for rounding; 0 when empty
  // The value at rank ceil(q * count), q in [0, 1], at most 1/128 above the true one and never
  // outside [min, max]; 0 when empty.
  int64_t quantile(double q) const;
  // How many values were at most this; those within 1/128 above it may be counted too.
  uint64_t count_at_most(int64_t value) const;
  double sum() const { return static_cast<double>(sum_); }

 private:
  static constexpr unsigned kBits = 7;
  static constexpr size_t kBuckets = (62 - kBits) * (size_t{1} << kBits) + (size_t{2} << kBits);

  static size_t bucket(uint64_t value) {
    if (value < (uint64_t{2} << kBits)) return value;
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - 1 - kBits;
    return (size_t{shift} << kBits) + (value >> shift);
  }
  static uint64_t highest(size_t bucket);

  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  unsigned __int128 sum_ = 0;
  int64_t max_ = 0;
  int64_t min_ = INT64_MAX;
};

}  // namespace ballast
