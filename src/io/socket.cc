// SPDX-License-Identifier: Apache-2.0
#include "io/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>

namespace ballast::io {
namespace {

template <typename T>
T address_as(const Address& address) {
  T out;
  std::memcpy(&out, &address.storage, sizeof out);
  return out;
}

const sockaddr* raw(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

void set_option(int fd, int level, int option) {
  const int on = 1;
  setsockopt(fd, level, option, &on, sizeof on);
}

}  // namespace

std::string Address::text() const {
  char buffer[INET6_ADDRSTRLEN] = {};
  if (storage.ss_family == AF_INET) {
    const auto v4 = address_as<sockaddr_in>(*this);
    inet_ntop(AF_INET, &v4.sin_addr, buffer, sizeof buffer);
    return std::string(buffer) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  if (storage.ss_family == AF_INET6) {
    const auto v6 = address_as<sockaddr_in6>(*this);
    inet_ntop(AF_INET6, &v6.sin6_addr, buffer, sizeof buffer);
    return "[" + std::string(buffer) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  return "?";
}

uint16_t Address::port() const {
  if (storage.ss_family == AF_INET) return ntohs(address_as<sockaddr_in>(*this).sin_port);
  if (storage.ss_family == AF_INET6) return ntohs(address_as<sockaddr_in6>(*this).sin6_port);
  return 0;
}

Result<Address> resolve(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (host.empty() ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(),
                             &hints, &found);
  if (rc != 0) return fail(ErrorCode::kUnavailable, "resolve " + host + ": " + gai_strerror(rc));
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

Result<Fd> listen_tcp(const Address& address) {
  Fd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail_errno("socket", errno);
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR);
  if (bind(fd.get(), raw(address), address.length) != 0)
    return fail_errno("bind " + address.text(), errno);
  if (listen(fd.get(), 1024) != 0) return fail_errno("listen " + address.text(), errno);
  return fd;
}

Result<Fd> connect_tcp(const Address& address) {
  Fd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail_errno("socket", errno);
  set_no_delay(fd.get());
  if (connect(fd.get(), raw(address), address.length) != 0 && errno != EINPROGRESS)
    return fail_errno("connect " + address.text(), errno);
  return fd;
}

Result<Fd> bind_udp(const Address& address) {
  Fd fd(socket(address.storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail_errno("socket", errno);
  if (bind(fd.get(), raw(address), address.length) != 0)
    return fail_errno("bind " + address.text() + " (UDP)", errno);
  return fd;
}

Result<Fd> connect_udp(const Address& address) {
  Fd fd(socket(address.storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail_errno("socket", errno);
  if (connect(fd.get(), raw(address), address.length) != 0)
    return fail_errno("connect " + address.text() + " (UDP)", errno);
  return fd;
}

Address local_address(int fd) {
  Address address;
  address.length = sizeof address.storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0)
    address = {};
  return address;
}

Address peer_address(int fd) {
  Address address;
  address.length = sizeof address.storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0)
    address = {};
  return address;
}

int pending_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

void set_no_delay(int fd) { set_option(fd, IPPROTO_TCP, TCP_NODELAY); }

}  // namespace ballast::io
