// SPDX-License-Identifier: Apache-2.0
#include "sim/demand.h"

#include <algorithm>
#include <cmath>

#include "balance/zipf.h"

namespace ballast::sim {
namespace {

constexpr uint64_t kLeastMeasured = 64;  // requests: a share is then known to an eighth

}  // namespace

ZipfFit fit_workload(const trace::Workload& workload, uint64_t objects) {
  std::vector<uint64_t> counts;
  counts.reserve(workload.keys.size());
  for (const trace::KeyCount& key : workload.keys) counts.push_back(key.count - key.error / 2);
  std::sort(counts.begin(), counts.end(), std::greater<>());
  return fit_zipf({counts, workload.requests, workload.distinct, workload.distinct_error, objects});
}

size_t measured_keys(const trace::Workload& workload, const ZipfFit& fit) {
  if (!fit.enough || !fit.fits) return workload.keys.size();
  const auto end =
      std::partition_point(workload.keys.begin(), workload.keys.end(),
                           [](const trace::KeyCount& key) { return key.count >= kLeastMeasured; });
  return static_cast<size_t>(end - workload.keys.begin());
}

Demand workload_demand(const trace::Workload& workload, const ZipfFit& fit, size_t head) {
  Demand demand;
  const auto total = static_cast<double>(workload.requests);
  const size_t measured = measured_keys(workload, fit);
  double rest = 1;
  for (size_t i = 0; i < measured; ++i) {
    const trace::KeyCount& key = workload.keys[i];
    const double share =
        (static_cast<double>(key.count) - static_cast<double>(key.error) / 2) / total;
    rest -= share;
    if (i >= head) {
      demand.tail += share;
      demand.tail_squares += share * share;
      continue;
    }
    demand.head.push_back(share);
    if (key.slot != trace::kNoSlot && demand.keys.size() == i)
      demand.keys.push_back({key.hash, key.slot});
  }
  rest = std::max(0.0, rest);
  if (measured >= fit.objects || !fit.fits) {
    demand.tail += rest;
    return demand;
  }
  const double scale = rest / balance::harmonic_range(fit.alpha, measured + 1, fit.objects);
  const uint64_t last = std::min<uint64_t>(fit.objects, std::max(head, measured));
  for (uint64_t rank = measured + 1; rank <= last; ++rank)
    demand.head.push_back(scale * std::pow(static_cast<double>(rank), -fit.alpha));
  demand.tail += scale * balance::harmonic_range(fit.alpha, last + 1, fit.objects);
  demand.tail_squares +=
      scale * scale * balance::harmonic_range(2 * fit.alpha, last + 1, fit.objects);
  return demand;
}

}  // namespace ballast::sim
