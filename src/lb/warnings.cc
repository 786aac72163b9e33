// SPDX-License-Identifier: Apache-2.0
#include "lb/warnings.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <set>

namespace ballast::lb {
namespace {

bool is_on(const char* setting) {
  std::ifstream file(setting);
  char value = '1';  // what cannot be read is not complained about
  file >> value;
  return value != '0';
}

std::set<HostAddress> own_addresses() {
  std::set<HostAddress> own;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return own;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, freeifaddrs);
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    HostAddress address;
    if (each->ifa_addr == nullptr) continue;
    if (each->ifa_addr->sa_family == AF_INET) {
      address.family = BL_FAMILY_IPV4;
      std::memcpy(address.word.data(),
                  &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, 4);
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      address.family = BL_FAMILY_IPV6;
      std::memcpy(address.word.data(),
                  &reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr, 16);
    } else {
      continue;
    }
    own.insert(address);
  }
  return own;
}

void warn_of_nat(const model::Vip& vip, const HostAddress& address, std::vector<std::string>& out) {
  const bool is_ipv4 = address.family == BL_FAMILY_IPV4;
  const char* setting = is_ipv4 ? "net.ipv4.ip_forward" : "net.ipv6.conf.all.forwarding";
  const char* file =
      is_ipv4 ? "/proc/sys/net/ipv4/ip_forward" : "/proc/sys/net/ipv6/conf/all/forwarding";
  if (!is_on(file))
    out.push_back(fmt::format("vip {}: NAT's answers need this host to forward: sysctl -w {}=1",
                              vip.name, setting));
}

void warn_of_gateways(const model::Vip& vip, const Neighbours& neighbours,
                      std::vector<std::string>& out) {
  for (const model::Instance& instance : vip.instances) {
    const auto address = parse_address(instance.address);
    const auto hop = address ? neighbours.find(*address) : std::nullopt;
    if (hop && hop->gateway != *address)
      out.push_back(
          fmt::format("vip {}: instance {}: forwarding by MAC address (l2) needs it on a network "
                      "of this host's; "
                      "it is behind {}",
                      vip.name, instance.name, to_string(hop->gateway)));
  }
}

}  // namespace

std::vector<std::string> warnings(const std::vector<model::Vip>& vips,
                                  const Neighbours& neighbours) {
  std::vector<std::string> out;
  const std::set<HostAddress> own = own_addresses();
  for (const model::Vip& vip : vips) {
    const auto address = parse_address(vip.address);
    if (!address) continue;
    if (own.contains(*address))
      out.push_back(fmt::format(
          "vip {}: {} is an address of this host; what comes in for it is balanced, not received",
          vip.name, vip.address));
    if (vip.forwarding == model::Forwarding::kNat) warn_of_nat(vip, *address, out);
    if (vip.forwarding == model::Forwarding::kL2) warn_of_gateways(vip, neighbours, out);
  }
  return out;
}

}  // namespace ballast::lb
