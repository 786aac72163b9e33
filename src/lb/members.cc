// SPDX-License-Identifier: Apache-2.0
#include "lb/members.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>

namespace ballast::lb {

bl_vip_key key_of(const model::Vip& vip) {
  const HostAddress address = parse_address(vip.address).value_or(HostAddress{});
  bl_vip_key key{};
  key.address = bytes_of(address);
  key.family = address.family;
  key.port_be = htons(vip.port);
  key.protocol = vip.protocol == model::Transport::kTcp ? IPPROTO_TCP : IPPROTO_UDP;
  return key;
}

std::string text_of(const bl_vip_key& key) {
  HostAddress address{.family = key.family};
  std::ranges::copy(key.address.word, address.word.begin());
  return fmt::format("{}/{}", key.protocol == IPPROTO_TCP ? "tcp" : "udp",
                     model::to_string({to_string(address), ntohs(key.port_be)}));
}

bl_owner owner_of(const model::Vip& vip, const model::Instance& instance) {
  const HostAddress address = parse_address(instance.address).value_or(HostAddress{});
  bl_owner owner{};
  owner.vip = key_of(vip);
  owner.address = bytes_of(address);
  owner.family = address.family;
  owner.port_be = htons(instance.port);
  owner.is_nat = vip.forwarding == model::Forwarding::kNat;  // else with a VIP of all ports alike
  return owner;
}

Result<Asked> asked_of(const model::Vip& vip, const model::Instance& instance) {
  Asked asked;
  if (vip.load != model::LoadSource::kNone) {
    const auto address = io::resolve(instance.address, vip.load_port);
    if (!address) return Unexpected(address.error());
    asked.load = {.source = vip.load,
                  .address = *address,
                  .path = vip.load_path,
                  .metric = vip.load_metric,
                  .full = vip.load_full};
    asked.load_words = fmt::format("{} {} {} {} {}", model::word_of(vip.load), address->text(),
                                   vip.load_path, vip.load_metric, vip.load_full);
  }
  if (vip.health == model::HealthCheck::kNone) return asked;
  uint16_t port = vip.health_port;
  if (port == 0) port = instance.port != 0 ? instance.port : vip.port;
  const auto address = io::resolve(instance.address, port);
  if (!address) return Unexpected(address.error());
  asked.health = {.kind = vip.health,
                  .address = *address,
                  .path = vip.health_path,
                  .interval = Nanos{vip.health_interval_ms} * kMillisecond,
                  .timeout = Nanos{vip.health_timeout_ms} * kMillisecond,
                  .rise = vip.rise,
                  .fall = vip.fall};
  asked.health_words = fmt::format("{} {} {} {} {} {} {}", model::word_of(vip.health),
                                   address->text(), vip.health_path, vip.health_interval_ms,
                                   vip.health_timeout_ms, vip.rise, vip.fall);
  return asked;
}

}  // namespace ballast::lb
