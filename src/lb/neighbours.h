// SPDX-License-Identifier: Apache-2.0
// Where packets to an instance leave and the MAC address of their next hop, by the kernel's routes
// and neighbours (rtnetlink(7)), kept up to date. The kernel does not see the packets that XDP
// sends, so it is told to look for a neighbour and to look again when it has become stale.
#pragma once

#include <linux/netlink.h>

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "io/loop.h"
#include "wire/lb.h"

struct mnl_socket;

namespace ballast::lb {

struct HostAddress {
  std::array<uint32_t, 4> word{};  // as bl_address
  uint8_t family = 0;              // BL_FAMILY_…

  auto operator<=>(const HostAddress&) const = default;
};
// kInvalid for what is no address.
Result<HostAddress> parse_address(const std::string& text);
std::string to_string(const HostAddress& address);
bl_address bytes_of(const HostAddress& address);

using Mac = std::array<uint8_t, 6>;

struct NextHop {
  uint32_t ifindex = 0;
  uint32_t mtu = 0;       // of IP packets
  HostAddress source{};   // that the kernel would send from
  HostAddress gateway{};  // the next hop, which may be the address itself
  Mac source_mac{};
  std::optional<Mac> mac{};  // the last known; none: it has not answered yet

  bool operator==(const NextHop&) const = default;
};

class Neighbours final : public io::Loop::Handler {
 public:
  // `on_change` is called on the loop when a watched address's next hop is another than before.
  static Result<std::unique_ptr<Neighbours>> create(io::Loop& loop,
                                                    std::function<void()> on_change);
  ~Neighbours() override;

  // Counted: an address is watched until it was unwatched as often.
  void watch(const HostAddress& address);
  void unwatch(const HostAddress& address);

  // Nothing: there is no route to it, or it is one of this host's own.
  std::optional<NextHop> find(const HostAddress& address) const;

  void on_ready(uint32_t epoll_events) override;

 private:
  struct Close {
    void operator()(mnl_socket* socket) const;
  };
  using Socket = std::unique_ptr<mnl_socket, Close>;
  struct Link {
    uint32_t mtu = 0;
    Mac mac{};
  };
  struct Neighbour {
    std::optional<Mac> mac{};  // stays when the kernel forgets it
    uint16_t state = 0;        // NUD_…
  };
  struct Watched {
    uint32_t count = 0;
    std::optional<NextHop> route{};  // without MAC
  };
  using NeighbourKey = std::pair<uint32_t, HostAddress>;

  Neighbours(io::Loop& loop, std::function<void()> on_change) noexcept
      : loop_(loop), on_change_(std::move(on_change)) {}
  Result<> open();
  Result<> reload();  // links and neighbours, all of them
  Result<> ask(nlmsghdr* request, const std::function<void(const nlmsghdr*)>& take);
  Result<> dump(uint16_t type, const std::function<void(const nlmsghdr*)>& take);
  void take(const nlmsghdr* message);
  void take_link(const nlmsghdr* message);
  void take_neighbour(const nlmsghdr* message);
  std::optional<NextHop> route_to(const HostAddress& address);
  void resolve_all();
  void seek(const NextHop& hop);
  void seek_missing();
  void changed_soon();

  io::Loop& loop_;
  std::function<void()> on_change_;
  Socket query_;
  Socket events_;
  uint32_t sequence_ = 0;
  std::map<uint32_t, Link> links_;
  std::map<NeighbourKey, Neighbour> neighbours_;
  std::map<HostAddress, Watched> watched_;
  bool routes_moved_ = false;
  bool is_change_due_ = false;
  io::Loop::Timer change_timer_{};
  io::Loop::Timer seek_timer_{};
};

}  // namespace ballast::lb
