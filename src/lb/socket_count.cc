// SPDX-License-Identifier: Apache-2.0
#include "lb/socket_count.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

namespace ballast::lb {
namespace {

using LocalAddress = std::array<uint32_t, 4>;

struct Dump {
  SocketCount& count;
  std::vector<LocalAddress> listeners = {};  // the kernel tells them before the connections
};

// A connection is one of a listener's: the port may also be another's own end, elsewhere.
int add_socket(const nlmsghdr* header, void* data) {
  auto& dump = *static_cast<Dump*>(data);
  const auto* socket = static_cast<const inet_diag_msg*>(mnl_nlmsg_get_payload(header));
  LocalAddress local;
  std::copy_n(socket->id.idiag_src, local.size(), local.begin());
  if (socket->idiag_state == TCP_LISTEN) {
    dump.count.listening = true;
    dump.count.accept_queue += socket->idiag_rqueue;
    dump.listeners.push_back(local);
    return MNL_CB_OK;
  }
  dump.count.established += static_cast<uint32_t>(std::any_of(
      dump.listeners.begin(), dump.listeners.end(),
      [&](const LocalAddress& each) { return each == local || each == LocalAddress{}; }));
  return MNL_CB_OK;
}

}  // namespace

void SocketCounter::Close::operator()(mnl_socket* socket) const { mnl_socket_close(socket); }

Result<SocketCounter> SocketCounter::create() {
  mnl_socket* socket = mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC);
  if (socket == nullptr) return fail_errno("open the kernel's socket diagnostics", errno);
  SocketCounter counter(socket);
  if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0)
    return fail_errno("bind to the kernel's socket diagnostics", errno);
  return counter;
}

Result<SocketCount> SocketCounter::count(uint16_t port) {
  SocketCount count;
  for (const uint8_t family : {uint8_t{AF_INET}, uint8_t{AF_INET6}}) {
    const Result<> asked = ask(family, port, count);
    if (!asked) return Unexpected(asked.error());
  }
  return count;
}

Result<> SocketCounter::ask(uint8_t family, uint16_t port, SocketCount& count) {
  std::array<char, 32 * 1024> buffer;
  nlmsghdr* header = mnl_nlmsg_put_header(buffer.data());
  header->nlmsg_type = SOCK_DIAG_BY_FAMILY;
  header->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  header->nlmsg_seq = ++sequence_;
  auto* request =
      static_cast<inet_diag_req_v2*>(mnl_nlmsg_put_extra_header(header, sizeof(inet_diag_req_v2)));
  request->sdiag_family = family;
  request->sdiag_protocol = IPPROTO_TCP;
  request->idiag_states = 1U << TCP_ESTABLISHED | 1U << TCP_LISTEN;
  request->id.idiag_sport = htons(port);
  if (mnl_socket_sendto(socket_.get(), header, header->nlmsg_len) < 0)
    return fail_errno("ask for the sockets", errno);
  Dump dump{count};
  const unsigned int self = mnl_socket_get_portid(socket_.get());
  for (;;) {
    const ssize_t got = mnl_socket_recvfrom(socket_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read the sockets", errno);
    const int more =
        mnl_cb_run(buffer.data(), static_cast<size_t>(got), sequence_, self, add_socket, &dump);
    if (more < 0) return fail_errno("read the sockets", errno);
    if (more == MNL_CB_STOP) return {};
  }
}

}  // namespace ballast::lb
