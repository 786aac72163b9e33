// SPDX-License-Identifier: Apache-2.0
// TCP and UDP sockets: resolving, listening, connecting; all non-blocking and close-on-exec.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "io/fd.h"

namespace ballast::io {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  std::string text() const;  // "127.0.0.1:6379", "[::1]:6379"
  uint16_t port() const;
};

// Blocks while the system's resolver works: call it at start, not in the data path.
Result<Address> resolve(const std::string& host, uint16_t port);
Result<Fd> listen_tcp(const Address& address);
// Begins to connect; the socket is writable once connected, or has SO_ERROR set.
Result<Fd> connect_tcp(const Address& address);
Result<Fd> bind_udp(const Address& address);
Result<Fd> connect_udp(const Address& address);  // sends to it, hears only it
Address local_address(int fd);
Address peer_address(int fd);
int pending_error(int fd);  // SO_ERROR
void set_no_delay(int fd);

}  // namespace ballast::io
