// SPDX-License-Identifier: Apache-2.0
// A scrape's copy of what the balancer counts.
#include <algorithm>

#include "lb/balancer.h"
#include "lb/metrics.h"

namespace ballast::lb {
namespace {

double of_count(uint64_t count) { return static_cast<double>(count); }

template <typename Metrics>
void set_traffic(Metrics& out, const Flowed& flowed) {
  out.packets = of_count(flowed.total.packets);
  out.bytes = of_count(flowed.total.bytes);
  out.flows = of_count(flowed.total.connections);
}

InstanceMetrics collect_instance(const Balancer& balancer, const Service& service,
                                 const Member& member, double weights) {
  InstanceMetrics out;
  out.vip = service.config.name;
  out.instance = member.name;
  set_traffic(out, balancer.traffic().of_instance(member.index));
  out.connections = balancer.ager().open_of(member.index);
  out.weight = member.weighed.weight;
  out.share = weights > 0 ? out.weight / weights : 0;
  out.utilisation = member.weighed.utilisation;
  out.available = member.weighed.available;
  out.up = member.is_up ? 1 : 0;
  if (member.health) {
    const HealthState& health = balancer.health().state(*member.health);
    out.checks = of_count(health.checks);
    out.bad_checks = of_count(health.bad);
  }
  if (member.load) {
    const LoadState& load = balancer.loads().state(*member.load);
    out.polls = of_count(load.polls);
    out.answers = of_count(load.answers);
    out.refused = of_count(load.refused);
    out.missed = load.missed;
  }
  return out;
}

void collect_service(const Balancer& balancer, const Service& service, LbMetrics& out) {
  VipMetrics vip;
  vip.vip = service.config.name;
  set_traffic(vip, balancer.traffic().of_vip(vip.vip));
  vip.instances = of_count(service.members.size());
  double weights = 0;
  for (const uint32_t index : service.members)
    weights += balancer.members().at(index).weighed.weight;
  for (const uint32_t index : service.members) {
    const InstanceMetrics& instance = out.instances.emplace_back(
        collect_instance(balancer, service, balancer.members().at(index), weights));
    vip.connections += instance.connections;
    vip.usable += instance.weight > 0 ? 1 : 0;
  }
  out.vips.push_back(std::move(vip));
}

}  // namespace

LbMetrics collect_metrics(const Balancer& balancer) {
  LbMetrics out;
  out.connections = balancer.ager().entries();
  out.capacity = balancer.settings().connections;
  out.aged = of_count(balancer.ager().aged());
  out.leaving = of_count(std::ranges::count_if(
      balancer.members(), [](const auto& each) { return each.second.is_leaving; }));
  out.generation = of_count(balancer.generation());
  out.rounds = of_count(balancer.counts().rounds);
  out.map_writes = of_count(balancer.counts().map_writes);
  out.write_errors = of_count(balancer.counts().write_errors);
  out.strays = of_count(balancer.loads().strays());
  out.lateness = balancer.loads().lateness();
  out.round_trips = balancer.loads().round_trips();
  for (uint32_t i = 0; i < BL_COUNTERS; ++i)
    out.counters.push_back(balancer.program().counters().sum(i).value_or(0));
  for (const Attached& each : balancer.attached())
    out.interfaces.push_back({each.interface, mode_of(each)});
  for (const Service& service : balancer.services()) collect_service(balancer, service, out);
  return out;
}

}  // namespace ballast::lb
