// SPDX-License-Identifier: Apache-2.0
#include "lb/connections.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "lb/status.h"

namespace ballast::lb {
namespace {

using nlohmann::json;

constexpr uint32_t kBatch = 4096;
constexpr uint64_t kMostTime = kSecond / 2;  // all other requests wait

std::string endpoint_of(const HostAddress& address, uint16_t port_be) {
  return model::to_string({to_string(address), ntohs(port_be)});
}

std::string endpoint_of(const bl_address& address, uint8_t family, uint16_t port_be) {
  HostAddress host{.family = family};
  std::ranges::copy(address.word, host.word.begin());
  return endpoint_of(host, port_be);
}

double seconds_of(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

json entry_of(const bl_flow_key& flow, const bl_connection& connection,
              const ConnectionNames& names, uint64_t now_ns) {
  const uint64_t idle_ns = now_ns > connection.last_seen_ns ? now_ns - connection.last_seen_ns : 0;
  const uint64_t limit_ns = idle_limit_ns(flow, connection, names.limits);
  json entry{{"protocol", flow.protocol == IPPROTO_TCP ? "tcp" : "udp"},
             {"source", endpoint_of(flow.source, flow.family, flow.source_port_be)},
             {"destination", endpoint_of(flow.destination, flow.family, flow.destination_port_be)},
             {"state", word_of(connection)},
             {"idle_s", seconds_of(idle_ns)},
             {"expires_s", seconds_of(limit_ns - std::min(limit_ns, idle_ns))},
             {"vip", nullptr},
             {"instance", nullptr},
             {"address", nullptr}};
  const auto found = names.instances.find(connection.instance);
  if (found == names.instances.end()) return entry;
  const ConnectionNames::Instance& instance = found->second;
  entry["vip"] = instance.vip;
  entry["instance"] = instance.name;
  entry["address"] = endpoint_of(
      instance.address, instance.port_be != 0 ? instance.port_be : flow.destination_port_be);
  return entry;
}

class Matcher {
 public:
  static Result<Matcher> create(const ConnectionNames& names, const ConnectionFilter& filter) {
    Matcher made(names, filter);
    const auto has = [&](const std::string ConnectionNames::Instance::* part,
                         const std::string& name) {
      return name.empty() || std::ranges::any_of(names.instances, [&](const auto& each) {
               return each.second.*part == name;
             });
    };
    if (!names.vips.contains(filter.vip) && !has(&ConnectionNames::Instance::vip, filter.vip))
      return fail(ErrorCode::kInvalid, "there is no VIP \"" + filter.vip + "\"");
    if (!has(&ConnectionNames::Instance::name, filter.instance))
      return fail(ErrorCode::kInvalid, "there is no instance \"" + filter.instance + "\"");
    if (filter.source.empty()) return made;
    const auto source = parse_address(filter.source);
    if (!source) return Unexpected(source.error());
    made.source_ = *source;
    return made;
  }

  bool takes(const bl_flow_key& flow, const bl_connection& connection) const {
    if (source_ && (flow.family != source_->family ||
                    std::memcmp(flow.source.word, source_->word.data(), sizeof(flow.source)) != 0))
      return false;
    if (filter_.vip.empty() && filter_.instance.empty()) return true;
    const auto found = names_.instances.find(connection.instance);
    if (found == names_.instances.end()) return false;
    return (filter_.vip.empty() || found->second.vip == filter_.vip) &&
           (filter_.instance.empty() || found->second.name == filter_.instance);
  }

 private:
  Matcher(const ConnectionNames& names, const ConnectionFilter& filter)
      : names_(names), filter_(filter) {}
  const ConnectionNames& names_;
  const ConnectionFilter& filter_;
  std::optional<HostAddress> source_;
};

}  // namespace

ConnectionNames connection_names(const Balancer& balancer) {
  ConnectionNames names{.vips = {}, .instances = {}, .limits = balancer.ager().limits()};
  for (const Service& service : balancer.services()) names.vips.insert(service.config.name);
  for (const auto& [index, member] : balancer.members())
    names.instances[index] = {member.vip_text(), member.name, member.address, member.owner.port_be};
  return names;
}

Result<std::string> connections_json(const loader::LbProgram& program, const ConnectionNames& names,
                                     const ConnectionFilter& filter) {
  const auto matcher = Matcher::create(names, filter);
  if (!matcher) return Unexpected(matcher.error());
  json list = json::array();
  bool has_more = false;
  const uint64_t now_ns = monotonic_ns();
  std::optional<uint32_t> place;
  do {
    const Result<> stepped = program.connections().step(
        place, kBatch, [&](const bl_flow_key& flow, const bl_connection& connection) {
          if (has_more || !matcher->takes(flow, connection)) return;
          has_more = list.size() >= filter.limit;
          if (!has_more) list.push_back(entry_of(flow, connection, names, now_ns));
        });
    if (!stepped) return Unexpected(stepped.error());
    has_more = has_more || (place && monotonic_ns() - now_ns > kMostTime);
  } while (place && !has_more);
  return json{{"connections", std::move(list)}, {"more", has_more}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

}  // namespace ballast::lb
