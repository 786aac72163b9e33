// SPDX-License-Identifier: Apache-2.0
#include "lb/neighbours.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/log.h"

namespace ballast::lb {
namespace {

constexpr Nanos kSeekTime = kSecond;
// Changes come in bursts; the last of a burst counts.
constexpr Nanos kSettleTime = 20 * kMillisecond;
constexpr size_t kBufferSize = 32 * 1024;

uint8_t kernel_family(uint8_t family) { return family == BL_FAMILY_IPV4 ? AF_INET : AF_INET6; }
uint16_t size_of(uint8_t family) { return family == BL_FAMILY_IPV4 ? 4 : 16; }

std::optional<HostAddress> read_address(const nlattr* attribute, uint8_t family) {
  HostAddress address{.family =
                          family == AF_INET ? uint8_t{BL_FAMILY_IPV4} : uint8_t{BL_FAMILY_IPV6}};
  if (attribute == nullptr || mnl_attr_get_payload_len(attribute) < size_of(address.family))
    return std::nullopt;
  std::memcpy(address.word.data(), mnl_attr_get_payload(attribute), size_of(address.family));
  return address;
}

std::optional<Mac> read_mac(const nlattr* attribute) {
  Mac mac;
  if (attribute == nullptr || mnl_attr_get_payload_len(attribute) != mac.size())
    return std::nullopt;
  std::memcpy(mac.data(), mnl_attr_get_payload(attribute), mac.size());
  return mac;
}

template <size_t kCount>
using Attributes = std::array<const nlattr*, kCount>;

// The attributes behind a fixed header, by type.
template <size_t kCount>
Attributes<kCount> attributes(const nlmsghdr* message, size_t header) {
  Attributes<kCount> found{};
  const auto keep = [](const nlattr* attribute, void* data) {
    auto& into = *static_cast<Attributes<kCount>*>(data);
    if (mnl_attr_get_type(attribute) < kCount) into[mnl_attr_get_type(attribute)] = attribute;
    return MNL_CB_OK;
  };
  mnl_attr_parse(message, static_cast<unsigned int>(header), keep, &found);
  return found;
}

int hand_over(const nlmsghdr* message, void* data) {
  (*static_cast<const std::function<void(const nlmsghdr*)>*>(data))(message);
  return MNL_CB_OK;
}

}  // namespace

Result<HostAddress> parse_address(const std::string& text) {
  HostAddress address{.family = BL_FAMILY_IPV4};
  if (inet_pton(AF_INET, text.c_str(), address.word.data()) == 1) return address;
  address.family = BL_FAMILY_IPV6;
  if (inet_pton(AF_INET6, text.c_str(), address.word.data()) == 1) return address;
  return fail(ErrorCode::kInvalid, "\"" + text + "\" is no IPv4 or IPv6 address");
}

std::string to_string(const HostAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(kernel_family(address.family), address.word.data(), text, sizeof(text));
  return text;
}

bl_address bytes_of(const HostAddress& address) {
  bl_address bytes;
  std::ranges::copy(address.word, bytes.word);
  return bytes;
}

void Neighbours::Close::operator()(mnl_socket* socket) const { mnl_socket_close(socket); }

Result<std::unique_ptr<Neighbours>> Neighbours::create(io::Loop& loop,
                                                       std::function<void()> on_change) {
  std::unique_ptr<Neighbours> made(new Neighbours(loop, std::move(on_change)));
  if (const Result<> opened = made->open(); !opened) return Unexpected(opened.error());
  if (const Result<> loaded = made->reload(); !loaded) return Unexpected(loaded.error());
  made->seek_timer_ = loop.after(kSeekTime, [self = made.get()] { self->seek_missing(); });
  return made;
}

Neighbours::~Neighbours() {
  loop_.cancel(seek_timer_);
  loop_.cancel(change_timer_);
  if (events_) loop_.remove(mnl_socket_get_fd(events_.get()));
}

Result<> Neighbours::open() {
  query_.reset(mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC));
  events_.reset(mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!query_ || !events_) return fail_errno("open the kernel's routes", errno);
  constexpr unsigned int kGroups = RTMGRP_NEIGH | RTMGRP_LINK | RTMGRP_IPV4_ROUTE |
                                   RTMGRP_IPV6_ROUTE | RTMGRP_IPV4_RULE |
                                   1U << (RTNLGRP_IPV6_RULE - 1);
  if (mnl_socket_bind(query_.get(), 0, MNL_SOCKET_AUTOPID) < 0 ||
      mnl_socket_bind(events_.get(), kGroups, MNL_SOCKET_AUTOPID) < 0)
    return fail_errno("bind to the kernel's routes", errno);
  return loop_.add(mnl_socket_get_fd(events_.get()), this);
}

Result<> Neighbours::ask(nlmsghdr* request, const std::function<void(const nlmsghdr*)>& take) {
  request->nlmsg_seq = ++sequence_;
  if (mnl_socket_sendto(query_.get(), request, request->nlmsg_len) < 0)
    return fail_errno("ask the kernel for a route", errno);
  const unsigned int self = mnl_socket_get_portid(query_.get());
  std::array<char, kBufferSize> buffer;
  for (;;) {
    const ssize_t got = mnl_socket_recvfrom(query_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read the kernel's answer", errno);
    const int more = mnl_cb_run(buffer.data(), static_cast<size_t>(got), sequence_, self, hand_over,
                                const_cast<std::function<void(const nlmsghdr*)>*>(&take));
    if (more < 0) return fail_errno("the kernel's answer", errno);
    if (more == MNL_CB_STOP) return {};
  }
}

Result<> Neighbours::dump(uint16_t type, const std::function<void(const nlmsghdr*)>& take) {
  std::array<char, 256> buffer;
  nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
  request->nlmsg_type = type;
  request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  mnl_nlmsg_put_extra_header(request, type == RTM_GETLINK ? sizeof(ifinfomsg) : sizeof(ndmsg));
  return ask(request, take);
}

Result<> Neighbours::reload() {
  for (const uint16_t type : {uint16_t{RTM_GETLINK}, uint16_t{RTM_GETNEIGH}}) {
    if (const Result<> dumped = dump(type, [this](const nlmsghdr* m) { take(m); }); !dumped)
      return dumped;
  }
  routes_moved_ = true;
  changed_soon();
  return {};
}

void Neighbours::take(const nlmsghdr* message) {
  switch (message->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
      take_link(message);
      break;
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH:
      take_neighbour(message);
      break;
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
    case RTM_NEWRULE:
    case RTM_DELRULE:
      routes_moved_ = true;
      changed_soon();
      break;
    default:
      break;
  }
}

void Neighbours::take_link(const nlmsghdr* message) {
  const auto* link = static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(message));
  // A bridge's own news come under this family, without what is wanted here.
  if (link->ifi_family != AF_UNSPEC) return;
  const auto index = static_cast<uint32_t>(link->ifi_index);
  routes_moved_ = true;
  changed_soon();
  if (message->nlmsg_type == RTM_DELLINK) {
    links_.erase(index);
    std::erase_if(neighbours_, [index](const auto& each) { return each.first.first == index; });
    return;
  }
  const auto found = attributes<IFLA_MTU + 1>(message, sizeof(*link));
  Link& known = links_[index];
  if (found[IFLA_MTU] != nullptr) known.mtu = mnl_attr_get_u32(found[IFLA_MTU]);
  if (const auto mac = read_mac(found[IFLA_ADDRESS])) known.mac = *mac;
}

void Neighbours::take_neighbour(const nlmsghdr* message) {
  const auto* neighbour = static_cast<const ndmsg*>(mnl_nlmsg_get_payload(message));
  if (neighbour->ndm_family != AF_INET && neighbour->ndm_family != AF_INET6) return;
  const auto found = attributes<NDA_LLADDR + 1>(message, sizeof(*neighbour));
  const auto address = read_address(found[NDA_DST], neighbour->ndm_family);
  if (!address) return;
  Neighbour& known = neighbours_[{static_cast<uint32_t>(neighbour->ndm_ifindex), *address}];
  known.state = message->nlmsg_type == RTM_DELNEIGH ? uint16_t{NUD_NONE} : neighbour->ndm_state;
  constexpr uint16_t kValid =
      NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;
  const auto mac = read_mac(found[NDA_LLADDR]);
  if (!mac || (known.state & kValid) == 0 || known.mac == mac) return;
  known.mac = mac;
  changed_soon();
}

std::optional<NextHop> Neighbours::route_to(const HostAddress& address) {
  std::array<char, 256> buffer;
  nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
  request->nlmsg_type = RTM_GETROUTE;
  request->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  auto* route = static_cast<rtmsg*>(mnl_nlmsg_put_extra_header(request, sizeof(rtmsg)));
  route->rtm_family = kernel_family(address.family);
  route->rtm_dst_len = static_cast<uint8_t>(8 * size_of(address.family));
  mnl_attr_put(request, RTA_DST, size_of(address.family), address.word.data());
  std::optional<NextHop> hop;
  const auto read = [&](const nlmsghdr* message) {
    const auto* answer = static_cast<const rtmsg*>(mnl_nlmsg_get_payload(message));
    if (message->nlmsg_type != RTM_NEWROUTE || answer->rtm_type != RTN_UNICAST) return;
    const auto found = attributes<RTA_VIA + 1>(message, sizeof(*answer));
    if (found[RTA_OIF] == nullptr) return;
    hop.emplace();
    hop->ifindex = mnl_attr_get_u32(found[RTA_OIF]);
    hop->source = read_address(found[RTA_PREFSRC], answer->rtm_family).value_or(HostAddress{});
    hop->gateway = read_address(found[RTA_GATEWAY], answer->rtm_family).value_or(address);
    if (found[RTA_VIA] == nullptr) return;
    // An IPv4 route by way of an IPv6 neighbour (RFC 5549).
    const auto* via = static_cast<const rtvia*>(mnl_attr_get_payload(found[RTA_VIA]));
    hop->gateway.family = via->rtvia_family == AF_INET ? BL_FAMILY_IPV4 : BL_FAMILY_IPV6;
    hop->gateway.word = {};
    std::memcpy(hop->gateway.word.data(), via->rtvia_addr, size_of(hop->gateway.family));
  };
  if (!ask(request, read) || !hop) return std::nullopt;  // the error says that there is no route
  const auto link = links_.find(hop->ifindex);
  if (link == links_.end()) return std::nullopt;
  hop->mtu = link->second.mtu;
  hop->source_mac = link->second.mac;
  return hop;
}

void Neighbours::watch(const HostAddress& address) {
  Watched& watched = watched_[address];
  if (watched.count++ > 0) return;
  watched.route = route_to(address);
  if (watched.route && !find(address)->mac) seek(*watched.route);
}

void Neighbours::unwatch(const HostAddress& address) {
  const auto found = watched_.find(address);
  if (found != watched_.end() && --found->second.count == 0) watched_.erase(found);
}

std::optional<NextHop> Neighbours::find(const HostAddress& address) const {
  const auto watched = watched_.find(address);
  if (watched == watched_.end() || !watched->second.route) return std::nullopt;
  NextHop hop = *watched->second.route;
  const auto neighbour = neighbours_.find({hop.ifindex, hop.gateway});
  if (neighbour != neighbours_.end()) hop.mac = neighbour->second.mac;
  return hop;
}

// What `ip neighbour add … use` does.
void Neighbours::seek(const NextHop& hop) {
  std::array<char, 256> buffer;
  nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
  request->nlmsg_type = RTM_NEWNEIGH;
  request->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
  auto* neighbour = static_cast<ndmsg*>(mnl_nlmsg_put_extra_header(request, sizeof(ndmsg)));
  neighbour->ndm_family = kernel_family(hop.gateway.family);
  neighbour->ndm_ifindex = static_cast<int32_t>(hop.ifindex);
  neighbour->ndm_state = NUD_NONE;
  neighbour->ndm_flags = NTF_USE;
  mnl_attr_put(request, NDA_DST, size_of(hop.gateway.family), hop.gateway.word.data());
  const Result<> asked = ask(request, [](const nlmsghdr*) {});
  if (!asked) log_debug("neighbour {}: {}", to_string(hop.gateway), asked.error().message);
}

void Neighbours::seek_missing() {
  constexpr uint16_t kSettled =
      NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_DELAY | NUD_INCOMPLETE;
  std::set<NeighbourKey> seen;  // many addresses may have one gateway
  for (const auto& [address, watched] : watched_) {
    if (!watched.route) continue;
    const NeighbourKey key{watched.route->ifindex, watched.route->gateway};
    if (!seen.insert(key).second) continue;
    const auto known = neighbours_.find(key);
    if (known == neighbours_.end() || (known->second.state & kSettled) == 0) seek(*watched.route);
  }
  loop_.cancel(seek_timer_);
  seek_timer_ = loop_.after(kSeekTime, [this] { seek_missing(); });
}

void Neighbours::resolve_all() {
  for (auto& [address, watched] : watched_) watched.route = route_to(address);
  routes_moved_ = false;
  seek_missing();
}

void Neighbours::changed_soon() {
  if (is_change_due_) return;
  is_change_due_ = true;
  change_timer_ = loop_.after(kSettleTime, [this] {
    is_change_due_ = false;
    if (routes_moved_) resolve_all();
    on_change_();
  });
}

void Neighbours::on_ready(uint32_t /*epoll_events*/) {
  std::array<char, kBufferSize> buffer;
  const std::function<void(const nlmsghdr*)> take_each = [this](const nlmsghdr* m) { take(m); };
  for (;;) {
    const ssize_t got = mnl_socket_recvfrom(events_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) {  // some were lost
      if (const Result<> loaded = reload(); !loaded) log_warning("{}", loaded.error().message);
      continue;
    }
    if (got <= 0) return;
    mnl_cb_run(buffer.data(), static_cast<size_t>(got), 0, 0, hand_over,
               const_cast<std::function<void(const nlmsghdr*)>*>(&take_each));
  }
}

}  // namespace ballast::lb
