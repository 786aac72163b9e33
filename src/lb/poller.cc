// SPDX-License-Identifier: Apache-2.0
#include "lb/poller.h"

#include <algorithm>
#include <cerrno>

#include "base/check.h"

namespace ballast::lb {
namespace {

constexpr int kDatagramsPerTurn = 1024;  // then the loop's other work gets its turn
constexpr Nanos kTick = kMillisecond;    // between looks for answers

io::Address any_address(int family) {
  io::Address address;
  address.storage.ss_family = static_cast<sa_family_t>(family);
  address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  return address;
}

}  // namespace

Result<std::unique_ptr<Poller>> Poller::create(io::Loop& loop,
                                               const std::vector<io::Address>& agents,
                                               PollerOptions options,
                                               std::function<void()> on_interval) {
  BALLAST_CHECK(options.interval > 0);
  std::unique_ptr<Poller> poller(
      new Poller(loop, agents, std::move(options), std::move(on_interval)));
  for (const int family : {AF_INET, AF_INET6}) {
    const bool wanted = std::any_of(
        poller->agents_.begin(), poller->agents_.end(),
        [family](const Polled& each) { return each.agent.storage.ss_family == family; });
    if (!wanted) continue;
    auto socket = io::bind_udp(any_address(family));
    if (!socket) return Unexpected(socket.error());
    poller->sockets_[family == AF_INET6] = std::move(*socket);
  }
  poller->begun_ = now_ns();
  poller->turn();
  return poller;
}

Poller::Poller(io::Loop& loop, const std::vector<io::Address>& agents, PollerOptions options,
               std::function<void()> on_interval)
    : loop_(loop),
      options_(std::move(options)),
      secret_(options_.secret),
      on_interval_(std::move(on_interval)),
      nonces_(agents.size()),
      random_(system_seed()) {
  for (const io::Address& agent : agents) {
    agents_.emplace_back();
    agents_.back().agent = agent;
  }
}

Poller::~Poller() { loop_.cancel(timer_); }

Nanos Poller::due(uint64_t poll) const {
  const uint64_t round = poll / agents_.size();
  const uint64_t place = poll % agents_.size();
  return begun_ + static_cast<Nanos>(round) * options_.interval +
         static_cast<Nanos>(place) * options_.interval / static_cast<Nanos>(agents_.size());
}

void Poller::turn() {
  if (agents_.empty()) return;
  // Answers are fetched in batches: to be woken for each would cost more than to read it.
  for (const io::Fd& socket : sockets_)
    if (socket.valid()) read(socket.get());
  const Nanos now = now_ns();
  // After a pause the polls of that time are not made up for: they would come all at once.
  if (now - due(next_poll_) > options_.interval) begun_ += now - due(next_poll_);
  while (due(next_poll_) <= now) {
    lateness_.record(now - due(next_poll_));
    ask(next_poll_ % agents_.size(), now);
    if (++next_poll_ % agents_.size() == 0 && on_interval_) on_interval_();
  }
  const Nanos next = due(next_poll_) - now;
  timer_ = loop_.after(asked_.empty() ? next : std::min(next, kTick), [this] { turn(); });
}

void Poller::ask(size_t agent, Nanos now) {
  Polled& polled = agents_[agent];
  if (nonces_[agent] != 0) {
    ++polled.missed;
    asked_.erase(nonces_[agent]);
  }
  uint64_t nonce = 0;
  do {
    nonce = random_.next();
  } while (nonce == 0 || asked_.contains(nonce));
  nonces_[agent] = nonce;
  asked_[nonce] = {agent, now};
  ++polled.polls;
  const std::string request = proto::encode_load_request(nonce, secret_);
  const io::Fd& socket = sockets_[polled.agent.storage.ss_family == AF_INET6];
  // What cannot be sent is missed like what is not answered.
  [[maybe_unused]] const auto sent =
      sendto(socket.get(), request.data(), request.size(), 0,
             reinterpret_cast<const sockaddr*>(&polled.agent.storage), polled.agent.length);
}

void Poller::read(int fd) {
  char datagram[proto::kLoadReportSize + 1];
  for (int i = 0; i < kDatagramsPerTurn; ++i) {
    const ssize_t got = recv(fd, datagram, sizeof datagram, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got < 0) continue;  // an earlier datagram was not delivered
    take({datagram, static_cast<size_t>(got)}, now_ns());
  }
}

void Poller::take(std::string_view datagram, Nanos now) {
  const auto nonce = proto::load_report_nonce(datagram);
  const auto asked = nonce ? asked_.find(*nonce) : asked_.end();
  if (asked == asked_.end()) {
    ++strays_;
    return;
  }
  Polled& polled = agents_[asked->second.agent];
  const auto report = proto::decode_load_report(datagram, *nonce, secret_);
  if (!report) {  // the last good one stays, and the true answer may still come
    ++polled.refused;
    return;
  }
  polled.report = *report;
  polled.missed = 0;
  ++polled.answers;
  round_trips_.record(now - asked->second.sent);
  nonces_[asked->second.agent] = 0;
  asked_.erase(asked);
}

}  // namespace ballast::lb
