// SPDX-License-Identifier: Apache-2.0
#include "lb/traffic.h"

#include <utility>

namespace ballast::lb {
namespace {

template <typename Of, typename Key>
Flowed find(const Of& of, const Key& key) {
  const auto found = of.find(key);
  return found == of.end() ? Flowed{} : found->second;
}

bl_traffic moved(const bl_traffic& from, const bl_traffic& to) {
  return {to.packets - from.packets, to.bytes - from.bytes, to.connections - from.connections};
}

Rates rates_of(const bl_traffic& moved, double seconds) {
  return {static_cast<double>(moved.packets) / seconds, static_cast<double>(moved.bytes) / seconds,
          static_cast<double>(moved.connections) / seconds};
}

void add(bl_traffic& to, const bl_traffic& moved) {
  to.packets += moved.packets;
  to.bytes += moved.bytes;
  to.connections += moved.connections;
}

void add(Rates& to, const Rates& rates) {
  to.packets += rates.packets;
  to.bytes += rates.bytes;
  to.connections += rates.connections;
}

}  // namespace

Result<> Traffic::begin(uint32_t instance) {
  instances_.erase(instance);
  return program_.instance_counters().clear(instance);
}

Result<> Traffic::sample(const std::vector<Place>& places, Nanos now) {
  const double seconds = static_cast<double>(now - sampled_at_) / static_cast<double>(kSecond);
  std::map<uint32_t, Flowed> instances;
  std::map<std::string, Flowed> vips;
  for (const Place& place : places) {
    const auto total = program_.instance_counters().sum(place.instance);
    if (!total) return Unexpected(total.error());
    Flowed& instance = instances[place.instance];
    instance.total = *total;
    const auto before = instances_.find(place.instance);
    const bool is_known = before != instances_.end();
    const bl_traffic more = is_known ? moved(before->second.total, *total) : *total;
    if (is_known) instance.rates = rates_of(more, seconds);
    const auto [vip, is_first] = vips.try_emplace(place.vip);
    if (is_first) vip->second.total = find(vips_, place.vip).total;
    add(vip->second.total, more);
    add(vip->second.rates, instance.rates);
  }
  instances_ = std::move(instances);
  vips_ = std::move(vips);
  sampled_at_ = now;
  return {};
}

Flowed Traffic::of_instance(uint32_t instance) const { return find(instances_, instance); }
Flowed Traffic::of_vip(const std::string& vip) const { return find(vips_, vip); }

}  // namespace ballast::lb
