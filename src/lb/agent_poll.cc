// SPDX-License-Identifier: Apache-2.0
#include "lb/agent_poll.h"

#include <cerrno>

namespace ballast::lb {
namespace {

constexpr int kDatagramsPerTurn = 1024;  // then the loop's other work gets its turn

size_t place_of(const io::Address& agent) { return agent.storage.ss_family == AF_INET6 ? 1 : 0; }

}  // namespace

Result<> AgentPoll::open_for(const io::Address& agent) {
  io::Fd& socket = sockets_.at(place_of(agent));
  if (socket.valid()) return {};
  io::Address any;
  any.storage.ss_family = agent.storage.ss_family;
  any.length = agent.length;
  auto bound = io::bind_udp(any);
  if (!bound) return Unexpected(bound.error());
  socket = std::move(*bound);
  return {};
}

void AgentPoll::ask(uint32_t id, const io::Address& agent, Nanos now) {
  forget(id);
  uint64_t nonce = 0;
  do {
    nonce = random_.next();
  } while (asked_.contains(nonce));
  asked_[nonce] = {id, now};
  nonces_[id] = nonce;
  const std::string request = proto::encode_load_request(nonce, secret_);
  [[maybe_unused]] const auto sent =
      sendto(sockets_.at(place_of(agent)).get(), request.data(), request.size(), 0,
             reinterpret_cast<const sockaddr*>(&agent.storage), agent.length);
}

void AgentPoll::forget(uint32_t id) {
  const auto found = nonces_.find(id);
  if (found == nonces_.end()) return;
  asked_.erase(found->second);
  nonces_.erase(found);
}

void AgentPoll::read(Nanos now, const Take& take) {
  for (const io::Fd& socket : sockets_)
    if (socket.valid()) read(socket.get(), now, take);
}

void AgentPoll::read(int fd, Nanos now, const Take& take) {
  char datagram[proto::kLoadReportSize + 1];
  for (int i = 0; i < kDatagramsPerTurn; ++i) {
    const ssize_t got = recv(fd, datagram, sizeof datagram, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got < 0) continue;  // an earlier datagram was not delivered
    const std::string_view bytes(datagram, static_cast<size_t>(got));
    const auto nonce = proto::load_report_nonce(bytes);
    const auto asked = nonce ? asked_.find(*nonce) : asked_.end();
    if (asked == asked_.end()) {
      ++strays_;
      continue;
    }
    const auto report = proto::decode_load_report(bytes, *nonce, secret_);
    const auto [id, sent] = asked->second;
    if (report) forget(id);
    take(id, report, now - sent);
  }
}

}  // namespace ballast::lb
