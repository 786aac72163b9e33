// SPDX-License-Identifier: Apache-2.0
#include "sim/alias_table.h"

#include <numeric>

#include "base/check.h"

namespace ballast::sim {

AliasTable::AliasTable(const std::vector<double>& weights) : entries_(weights.size()) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  BALLAST_CHECK(sum > 0 && weights.size() < (size_t{1} << 31));
  std::vector<double> part(weights.size());
  std::vector<uint32_t> small;
  std::vector<uint32_t> large;
  for (uint32_t i = 0; i < part.size(); ++i) {
    part[i] = weights[i] / sum * static_cast<double>(part.size());
    entries_[i].own = entries_[i].alias = i;
    (part[i] < 1 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    const uint32_t low = small.back();
    const uint32_t high = large.back();
    small.pop_back();
    entries_[low].keep = static_cast<uint32_t>(part[low] * 4294967296.0);
    entries_[low].alias = high;
    part[high] -= 1 - part[low];
    if (part[high] >= 1) continue;
    large.pop_back();
    small.push_back(high);
  }
  // What remains is 1 up to rounding: own and alias are the same entry.
}

}  // namespace ballast::sim
