// SPDX-License-Identifier: Apache-2.0
#include "balance/dispatch_table.h"

#include <algorithm>
#include <numeric>

#include "balance/hash.h"
#include "base/check.h"

namespace ballast::balance {

FlowHash flow_hash(uint64_t flow, uint64_t seed) {
  const uint64_t mixed = mix(flow, seed);
  return {static_cast<uint32_t>(mixed >> 32), static_cast<uint32_t>(mixed)};
}

DispatchTable::DispatchTable(std::span<const uint32_t> weights) {
  BALLAST_CHECK(weights.size() <= kMostInstances);
  std::vector<uint16_t> order(weights.size());
  std::iota(order.begin(), order.end(), uint16_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](uint16_t a, uint16_t b) { return weights[a] > weights[b]; });
  for (const uint16_t instance : order) {
    const uint32_t weight = weights[instance];
    BALLAST_CHECK(weight <= kMostWeight);
    if (weight == 0) break;
    if (members_.empty() || weights[members_.back()] != weight)
      classes_.push_back({total_, static_cast<uint32_t>(members_.size()), 0});
    members_.push_back(instance);
    total_ += weight;
    classes_.back().below = total_;
    ++classes_.back().size;
  }
  BALLAST_CHECK(total_ > 0);
}

}  // namespace ballast::balance
