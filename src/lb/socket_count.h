// SPDX-License-Identifier: Apache-2.0
// How many TCP connections this network namespace has on a port, and how many wait to be accepted,
// by the kernel's socket diagnostics (sock_diag(7)).
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"

struct mnl_socket;

namespace ballast::lb {

struct SocketCount {
  uint32_t established = 0;
  uint32_t accept_queue = 0;  // complete, not accepted yet
  bool listening = false;
};

class SocketCounter {
 public:
  static Result<SocketCounter> create();

  // IPv4 and IPv6, of all local addresses.
  Result<SocketCount> count(uint16_t port);

 private:
  struct Close {
    void operator()(mnl_socket* socket) const;
  };
  explicit SocketCounter(mnl_socket* socket) : socket_(socket) {}
  Result<> ask(uint8_t family, uint16_t port, SocketCount& count);

  std::unique_ptr<mnl_socket, Close> socket_;
  uint32_t sequence_ = 0;
};

}  // namespace ballast::lb
