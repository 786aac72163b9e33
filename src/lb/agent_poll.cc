// SPDX-License-Identifier: Apache-2.0
#include "lb/agent_poll.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace ballast::lb {
namespace {

constexpr int kDatagramsPerTurn = 1024;  // then the loop's other work gets its turn
constexpr size_t kBatch = 64;            // datagrams a system call

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
  questions_.at(place_of(agent)).push_back({proto::encode_load_request(nonce, secret_), agent});
}

void AgentPoll::send() {
  for (size_t place = 0; place < sockets_.size(); ++place)
    send(sockets_.at(place).get(), questions_.at(place));
}

void AgentPoll::send(int fd, std::vector<Question>& questions) {
  std::array<mmsghdr, kBatch> messages{};
  std::array<iovec, kBatch> parts;
  for (size_t first = 0; first < questions.size();) {
    const size_t count = std::min(kBatch, questions.size() - first);
    for (size_t i = 0; i < count; ++i) {
      Question& question = questions[first + i];
      parts.at(i) = {question.datagram.data(), question.datagram.size()};
      msghdr& header = messages.at(i).msg_hdr;
      header.msg_name = &question.agent.storage;
      header.msg_namelen = question.agent.length;
      header.msg_iov = &parts.at(i);
      header.msg_iovlen = 1;
    }
    const int sent = sendmmsg(fd, messages.data(), static_cast<unsigned>(count), 0);
    first += sent > 0 ? static_cast<size_t>(sent) : 1;  // it ends before one that cannot be sent
  }
  questions.clear();
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
  std::array<std::array<char, proto::kLoadReportSize + 1>, kBatch> datagrams;
  std::array<iovec, kBatch> parts;
  std::array<mmsghdr, kBatch> messages{};
  for (size_t i = 0; i < kBatch; ++i) {
    parts.at(i) = {datagrams.at(i).data(), datagrams.at(i).size()};
    messages.at(i).msg_hdr.msg_iov = &parts.at(i);
    messages.at(i).msg_hdr.msg_iovlen = 1;
  }
  for (int read = 0; read < kDatagramsPerTurn;) {
    const int got = recvmmsg(fd, messages.data(), kBatch, 0, nullptr);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    read += std::max(got, 1);
    for (int i = 0; i < got; ++i) {
      const auto place = static_cast<size_t>(i);
      hear({datagrams.at(place).data(), messages.at(place).msg_len}, now, take);
    }
    if (got > 0 && got < static_cast<int>(kBatch)) return;
    // Else there may be more, or an earlier datagram was not delivered.
  }
}

void AgentPoll::hear(std::string_view datagram, Nanos now, const Take& take) {
  const auto nonce = proto::load_report_nonce(datagram);
  const auto asked = nonce ? asked_.find(*nonce) : asked_.end();
  if (asked == asked_.end()) {
    ++strays_;
    return;
  }
  const auto report = proto::decode_load_report(datagram, *nonce, secret_);
  const auto [id, sent] = asked->second;
  if (report) forget(id);
  take(id, report, now - sent);
}

}  // namespace ballast::lb
