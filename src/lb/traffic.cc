// SPDX-License-Identifier: Apache-2.0
#include "lb/traffic.h"

#include <utility>

namespace ballast::lb {

Result<> Traffic::sample(const std::vector<uint32_t>& instances, Nanos now) {
  const double seconds = static_cast<double>(now - sampled_at_) / static_cast<double>(kSecond);
  std::map<uint32_t, Sample> fresh;
  for (const uint32_t instance : instances) {
    const auto total = program_.instance_counters().sum(instance);
    if (!total) return Unexpected(total.error());
    Sample& sample = fresh[instance];
    sample.total = *total;
    const auto before = samples_.find(instance);
    if (before == samples_.end()) continue;
    const auto rate = [&](__u64 bl_traffic::* what) {
      const uint64_t moved = (*total).*what - before->second.total.*what;
      return static_cast<double>(moved) / seconds;
    };
    sample.rates = {rate(&bl_traffic::packets), rate(&bl_traffic::bytes),
                    rate(&bl_traffic::connections)};
  }
  samples_ = std::move(fresh);
  sampled_at_ = now;
  return {};
}

bl_traffic Traffic::total(uint32_t instance) const {
  const auto found = samples_.find(instance);
  return found == samples_.end() ? bl_traffic{} : found->second.total;
}

Rates Traffic::rates(uint32_t instance) const {
  const auto found = samples_.find(instance);
  return found == samples_.end() ? Rates{} : found->second.rates;
}

}  // namespace ballast::lb
