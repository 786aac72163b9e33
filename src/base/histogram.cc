// SPDX-License-Identifier: Apache-2.0
#include "base/histogram.h"

#include <algorithm>
#include <cmath>

namespace ballast {

uint64_t Histogram::highest(size_t bucket) {
  if (bucket < (size_t{2} << kBits)) return bucket;
  const size_t shift = (bucket >> kBits) - 1;
  const uint64_t lead = bucket - (shift << kBits);
  return ((lead + 1) << shift) - 1;
}

void Histogram::merge(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
  min_ = std::min(min_, other.min_);
}

double Histogram::mean() const {
  return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

uint64_t Histogram::count_at_most(int64_t value) const {
  if (value < 0) return 0;
  if (value >= max_) return count_;
  uint64_t seen = 0;
  for (size_t i = 0; i <= bucket(static_cast<uint64_t>(value)); ++i) seen += counts_[i];
  return seen;
}

int64_t Histogram::quantile(double q) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_));
  // Not a cast of `wanted`: near 2^64 it may round up to a value no uint64_t has.
  const uint64_t rank = wanted >= static_cast<double>(count_)
                            ? count_
                            : std::max<uint64_t>(1, static_cast<uint64_t>(wanted));
  if (rank == count_) return max_;
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::clamp(static_cast<int64_t>(highest(i)), min_, max_);
  }
  return max_;
}

}  // namespace ballast
