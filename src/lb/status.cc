// SPDX-License-Identifier: Apache-2.0
#include "lb/status.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "balance/dispatch_table.h"

namespace ballast::lb {
namespace {

using nlohmann::json;

std::string mac_text(const uint8_t* mac) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3],
                     mac[4], mac[5]);
}

template <typename Value>
json or_null(const std::optional<Value>& value) {
  return value ? json(*value) : json(nullptr);
}

double seconds(Nanos ns) { return static_cast<double>(ns) / static_cast<double>(kSecond); }

json load_of(const LoadState& state, Nanos now) {
  return {{"utilisation", or_null(state.utilisation)},
          {"cores", or_null(state.cores)},
          {"connections", or_null(state.connections)},
          {"accept_queue", or_null(state.accept_queue)},
          {"latency_us", or_null(state.latency_us)},
          {"factor", or_null(state.factor)},
          {"heard_s", state.heard_at == 0 ? json(nullptr) : json(seconds(now - state.heard_at))},
          {"missed", state.missed},
          {"polls", state.polls},
          {"answers", state.answers},
          {"refused", state.refused},
          {"error", state.error}};
}

json health_of(const HealthState& state, Nanos now) {
  const char* words[] = {"unknown", "down", "up"};
  return {{"state", words[static_cast<size_t>(state.health)]},
          {"since_s", state.since == 0 ? json(nullptr) : json(seconds(now - state.since))},
          {"cause", state.last_cause},
          {"checks", state.checks},
          {"bad", state.bad}};
}

json next_hop_of(const Balancer& balancer, const Member& member) {
  const auto hop = balancer.neighbours().find(member.address);
  if (!hop) return nullptr;
  char name[IF_NAMESIZE] = "";
  if_indextoname(hop->ifindex, name);
  return {{"interface", name},
          {"gateway", to_string(hop->gateway)},
          {"mac", hop->mac ? json(mac_text(hop->mac->data())) : json(nullptr)}};
}

void add_traffic(json& object, const Flowed& flowed) {
  object["packets"] = flowed.total.packets;
  object["bytes"] = flowed.total.bytes;
  object["flows"] = flowed.total.connections;
  object["packets_per_s"] = flowed.rates.packets;
  object["bytes_per_s"] = flowed.rates.bytes;
  object["flows_per_s"] = flowed.rates.connections;
}

json instance_of(const Balancer& balancer, const Member& member, uint64_t weights, Nanos now) {
  json object{{"name", member.name},
              {"address", to_string(member.address)},
              {"port", ntohs(member.owner.port_be)},
              {"index", member.index},
              {"operation", model::word_of(member.config.operation)},
              {"up", member.is_up},
              {"static_weight", member.config.weight},
              {"weight", member.weighed.weight},
              {"share", weights == 0 ? 0.0
                                     : static_cast<double>(member.weighed.weight) /
                                           static_cast<double>(weights)},
              {"utilisation", member.weighed.utilisation},
              {"available", member.weighed.available},
              {"reason", words_of(member.weighed.reason)},
              {"open", balancer.ager().open_of(member.index)},
              {"next_hop", next_hop_of(balancer, member)}};
  add_traffic(object, balancer.traffic().of_instance(member.index));
  if (member.load) object["load"] = load_of(balancer.loads().state(*member.load), now);
  if (member.health) object["health"] = health_of(balancer.health().state(*member.health), now);
  return object;
}

json vip_of(const Balancer& balancer, const Service& service, Nanos now) {
  const model::Vip& vip = service.config;
  json object{{"name", vip.name},
              {"address", vip.address},
              {"port", vip.port},
              {"protocol", model::word_of(vip.protocol)},
              {"forwarding", model::word_of(vip.forwarding)},
              {"scheduler", model::word_of(vip.scheduler)},
              {"instances", json::array()}};
  uint64_t weights = 0;
  for (const uint32_t index : service.members)
    weights += balancer.members().at(index).weighed.weight;
  add_traffic(object, balancer.traffic().of_vip(vip.name));
  uint64_t open = 0;
  for (const uint32_t index : service.members) {
    object["instances"].push_back(
        instance_of(balancer, balancer.members().at(index), weights, now));
    open += balancer.ager().open_of(index);
  }
  object["open"] = open;
  return object;
}

json counters_of(const loader::LbProgram& program) {
  json object = json::object();
  const auto& names = loader::counter_names();
  for (uint32_t i = 0; i < names.size(); ++i)
    object[names[i].name] = program.counters().sum(i).value_or(0);
  return object;
}

json leaving_of(const Balancer& balancer) {
  json list = json::array();
  for (const auto& [index, member] : balancer.members()) {
    if (!member.is_leaving) continue;
    list.push_back({{"name", member.name},
                    {"vip", member.vip_text()},
                    {"address", to_string(member.address)},
                    {"entries", balancer.ager().entries_of(index)}});
  }
  return list;
}

}  // namespace

std::string status_json(const Balancer& balancer) {
  const Nanos now = now_ns();
  json root{{"generation", balancer.generation()}, {"interval_ms", balancer.settings().interval_ms},
            {"interfaces", json::array()},         {"vips", json::array()},
            {"leaving", leaving_of(balancer)},     {"counters", counters_of(balancer.program())}};
  for (const Attached& each : balancer.attached())
    root["interfaces"].push_back(
        {{"name", each.interface}, {"mode", mode_of(each)}, {"taken_over", each.is_taken_over}});
  for (const Service& service : balancer.services())
    root["vips"].push_back(vip_of(balancer, service, now));
  root["connections"] = {{"entries", balancer.ager().entries()},
                         {"capacity", balancer.settings().connections},
                         {"aged", balancer.ager().aged()},
                         {"passes", balancer.ager().passes()}};
  const ControlCounts& counts = balancer.counts();
  root["control"] = {
      {"rounds", counts.rounds},
      {"map_writes", counts.map_writes},
      {"write_errors", counts.write_errors},
      {"strays", balancer.loads().strays()},
      {"poll_late_p99_ms",
       static_cast<double>(balancer.loads().lateness().quantile(0.99)) / kMillisecond}};
  return root.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace ballast::lb
