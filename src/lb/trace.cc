// SPDX-License-Identifier: Apache-2.0
// Where a flow would go now: looked up in the packet path's own maps, chosen by its own code.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <nlohmann/json.hpp>

#include "lb/status.h"
#include "wire/flow_hash.h"

namespace ballast::lb {
namespace {

using nlohmann::json;

Result<bl_flow_key> flow_of(const std::string& protocol, const std::string& source,
                            const std::string& destination) {
  bl_flow_key flow{};
  model::Transport transport{};
  if (const Result<> read = model::parse_word(protocol, transport); !read)
    return fail(ErrorCode::kInvalid, "protocol: " + read.error().message);
  flow.protocol = transport == model::Transport::kTcp ? IPPROTO_TCP : IPPROTO_UDP;
  const auto from = model::parse_endpoint(source);
  const auto to = model::parse_endpoint(destination);
  if (!from) return fail(ErrorCode::kInvalid, "source: " + from.error().message);
  if (!to) return fail(ErrorCode::kInvalid, "destination: " + to.error().message);
  const auto from_address = parse_address(from->host);
  const auto to_address = parse_address(to->host);
  if (!from_address) return fail(ErrorCode::kInvalid, "source: " + from_address.error().message);
  if (!to_address) return fail(ErrorCode::kInvalid, "destination: " + to_address.error().message);
  if (from_address->family != to_address->family)
    return fail(ErrorCode::kInvalid, "source and destination are of different families");
  flow.source = bytes_of(*from_address);
  flow.destination = bytes_of(*to_address);
  flow.family = to_address->family;
  flow.source_port_be = htons(from->port);
  flow.destination_port_be = htons(to->port);
  return flow;
}

void add_instance(json& said, const Balancer& balancer, uint32_t index) {
  said["index"] = index;
  const auto found = balancer.members().find(index);
  if (found == balancer.members().end()) return;
  said["instance"] = found->second.name;
  said["address"] = to_string(found->second.address);
  said["weight"] = found->second.weighed.weight;
}

void say_known(json& said, const Balancer& balancer, const bl_connection& entry) {
  said["state"] = word_of(entry);
  const uint64_t now_ns = std::max<uint64_t>(monotonic_ns(), entry.last_seen_ns);
  said["idle_s"] = static_cast<double>(now_ns - entry.last_seen_ns) * 1e-9;
  add_instance(said, balancer, entry.instance);
}

Result<std::optional<bl_vip>> vip_of(const Balancer& balancer, const bl_flow_key& flow) {
  bl_vip_key key{};
  key.address = flow.destination;
  key.family = flow.family;
  key.protocol = flow.protocol;
  key.port_be = flow.destination_port_be;
  const auto exact = balancer.program().vips().get(key);
  if (!exact || *exact) return exact;
  key.port_be = 0;
  return balancer.program().vips().get(key);
}

Result<> say_coupled(json& said, const Balancer& balancer, const bl_coupling& coupling,
                     bl_flow_hash hash) {
  const uint32_t slot = bl_ring_slot_of(hash, coupling.ring_size);
  const auto page = balancer.program().ring_pages().get(coupling.pages[slot / BL_RING_PAGE]);
  if (!page) return Unexpected(page.error());
  const uint16_t first = (**page).slots[slot % BL_RING_PAGE].first;
  const uint32_t place = bl_couple(coupling.members, coupling.count, first, hash);
  if (place >= BL_MOST_COUPLED || first >= BL_MOST_COUPLED)
    return fail(ErrorCode::kState, "the VIP's ring is being written; try again");
  const double keep = static_cast<double>(coupling.members[first].keep) / BL_ALWAYS;
  said["slot"] = slot;
  said["of"] = coupling.ring_size;
  said["keep"] = keep;
  add_instance(said["ring"], balancer, coupling.members[first].instance);
  add_instance(said, balancer, coupling.members[place].instance);
  said["why"] = fmt::format(
      "a new flow: slot {} of {} in the VIP's ring, whose instance is kept with probability {:.3f} "
      "to give each its share; {}",
      slot, coupling.ring_size, keep,
      place == first ? "it was kept" : "another one was drawn from those short of their share");
  return {};
}

Result<> say_choice(json& said, const Balancer& balancer, const bl_flow_key& flow,
                    const bl_vip& vip) {
  const auto table = balancer.program().dispatch_tables().get(vip.table);
  if (!table) return Unexpected(table.error());
  if (!*table || (*table)->class_count == 0) {
    said["why"] = "no instance of the VIP may get anything now: dropped";
    return {};
  }
  const bl_dispatch_table& choice = **table;
  const bl_flow_hash hash = bl_hash_flow(&flow, balancer.hash_seed());
  said["table"] = vip.table;
  const auto coupling = balancer.program().couplings().get(vip.table);
  if (!coupling) return Unexpected(coupling.error());
  if (*coupling && (*coupling)->ring_size > 0) return say_coupled(said, balancer, **coupling, hash);
  const uint32_t position = bl_dispatch(choice.classes, choice.class_count, choice.total, hash);
  const uint32_t draw = bl_scale(hash.of_class, choice.total);
  said["draw"] = draw;
  said["of"] = choice.total;
  add_instance(said, balancer, choice.members[position]);
  said["why"] = fmt::format(
      "a new flow: draw {} of {} falls into a class of {} different weights; member {} of the "
      "table",
      draw, choice.total, choice.class_count, position);
  return {};
}

}  // namespace

const char* word_of(const bl_connection& connection) {
  constexpr const char* kStates[] = {"new", "open", "closing", "reset"};
  return connection.state < std::size(kStates) ? kStates[connection.state] : "?";
}

Result<std::string> trace_json(const Balancer& balancer, const std::string& protocol,
                               const std::string& source, const std::string& destination) {
  const auto flow = flow_of(protocol, source, destination);
  if (!flow) return Unexpected(flow.error());
  json said{{"instance", nullptr}, {"vip", nullptr}};
  const auto vip = vip_of(balancer, *flow);
  if (!vip) return Unexpected(vip.error());
  for (const Service& service : balancer.services()) {
    const bool is_here = std::memcmp(&service.key.address, &flow->destination, 16) == 0 &&
                         service.key.protocol == flow->protocol &&
                         (service.key.port_be == flow->destination_port_be ||
                          (service.key.port_be == 0 && said["vip"].is_null()));
    if (is_here) said["vip"] = service.config.name;
  }
  const auto known = balancer.program().connections().get(*flow);
  if (!known) return Unexpected(known.error());
  const auto newcomer = balancer.program().newcomer(*flow);
  if (!newcomer) return Unexpected(newcomer.error());
  if (*known) {
    said["found"] = "connection";
    said["why"] = "it is in the connection table and stays with its instance";
    say_known(said, balancer, **known);
    const auto instance = balancer.program().instances().get((**known).instance);
    if (instance && *instance && (**instance).state != BL_INSTANCE_UP)
      said["why"] =
          "its instance is down: with its next packet it gets another one, which resets it";
  } else if (!*vip) {
    said["found"] = "nothing";
    said["why"] = "no VIP has this address, port and protocol: left to the kernel";
  } else if (*newcomer) {
    said["found"] = "newcomer";
    said["why"] = "its first packet was seen; it stays with that one's instance";
    add_instance(said, balancer, **newcomer);
  } else {
    said["found"] = "choice";
    if (const Result<> chosen = say_choice(said, balancer, *flow, **vip); !chosen)
      return Unexpected(chosen.error());
  }
  return said.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace ballast::lb
