// SPDX-License-Identifier: Apache-2.0
#include "balance/connection_counts.h"

#include "base/check.h"

namespace ballast::balance {

ConnectionCounts::ConnectionCounts(std::span<const uint32_t> weights) {
  BALLAST_CHECK(!weights.empty() && weights.size() <= DispatchTable::kMostInstances);
  for (const uint32_t weight : weights) {
    BALLAST_CHECK(weight > 0 && weight <= DispatchTable::kMostWeight);
    instances_.push_back({weight, 0});
  }
}

uint16_t ConnectionCounts::least(Random& random) const {
  size_t best = 0;
  uint64_t equal = 1;
  for (size_t i = 1; i < instances_.size(); ++i) {
    if (less(instances_[best], instances_[i])) continue;
    equal = less(instances_[i], instances_[best]) ? 1 : equal + 1;
    // The i-th of equals replaces the one kept with probability 1/i: uniform among all of them.
    if (equal == 1 || random.below(equal) == 0) best = i;
  }
  return static_cast<uint16_t>(best);
}

uint16_t ConnectionCounts::of_two(FlowHash hash) const {
  const uint64_t count = instances_.size();
  const auto first = static_cast<uint16_t>((hash.of_class * count) >> 32);
  if (count == 1) return first;
  // Counted from the one after the first, so never the first.
  const uint64_t step = 1 + ((hash.of_member * (count - 1)) >> 32);
  const auto second = static_cast<uint16_t>((first + step) % count);
  return less(instances_[second], instances_[first]) ? second : first;
}

}  // namespace ballast::balance
