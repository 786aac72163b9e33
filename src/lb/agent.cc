// SPDX-License-Identifier: Apache-2.0
#include "lb/agent.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/log.h"
#include "base/random.h"
#include "telemetry/admin.h"

namespace ballast::lb {
namespace {

constexpr Nanos kTick = 20 * kMillisecond;
constexpr std::chrono::milliseconds kProbePause{100};
constexpr std::chrono::milliseconds kProbeTimeout{2000};
constexpr int kDatagramsPerTurn = 64;

}  // namespace

Result<std::unique_ptr<Agent>> Agent::create(io::Loop& loop, AgentOptions options) {
  auto meter = options.group.empty() ? CpuMeter::of_host()
                                     : CpuMeter::of_group(options.group, options.group_root);
  if (!meter) return Unexpected(meter.error());
  auto counter = SocketCounter::create();
  if (!counter) return Unexpected(counter.error());
  const auto address = io::resolve(options.listen.host, options.listen.port);
  if (!address) return Unexpected(address.error());
  auto socket = io::bind_udp(*address);
  if (!socket) return Unexpected(socket.error());
  std::unique_ptr<Agent> agent(new Agent(loop, std::move(options), std::move(*meter),
                                         std::move(*counter), std::move(*socket)));
  if (const auto added = loop.add(agent->socket_.get(), agent.get()); !added)
    return Unexpected(added.error());
  if (!agent->options_.check.host.empty()) {
    const auto check = io::resolve(agent->options_.check.host, agent->options_.check.port);
    if (!check) return Unexpected(check.error());
    auto listener = io::Listener::create(loop, *check, [self = agent.get()](const io::Fd& fd) {
      const std::string text = self->check_text();
      [[maybe_unused]] const auto sent = ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
    });
    if (!listener) return Unexpected(listener.error());
    agent->check_ = std::move(*listener);
  }
  return agent;
}

Agent::Agent(io::Loop& loop, AgentOptions options, CpuMeter meter, SocketCounter counter,
             io::Fd socket)
    : loop_(loop),
      options_(std::move(options)),
      secrets_(options_.secrets.begin(), options_.secrets.end()),
      meter_(std::move(meter)),
      counter_(std::move(counter)),
      socket_(std::move(socket)) {
  report_.incarnation = system_seed();
  measure();
  if (!options_.probe.host.empty())
    prober_ = std::jthread([this](const std::stop_token& stop) { probe(stop); });
}

Agent::~Agent() {
  loop_.cancel(timer_);
  loop_.remove(socket_.get());
}

io::Address Agent::check_address() const { return check_ ? check_->address() : io::Address{}; }

// On a thread of its own, since a slow instance is slow to answer.
void Agent::probe(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Nanos begun = now_ns();
    const auto body = telemetry::http_get(options_.probe, options_.probe_path, kProbeTimeout);
    // One that does not answer is as slow as the time it was given.
    const Nanos took = body ? now_ns() - begun : Nanos{kProbeTimeout.count()} * kMillisecond;
    latency_us_ = took / kMicrosecond;
    std::this_thread::sleep_for(kProbePause);
  }
}

void Agent::measure() {
  const Nanos now = now_ns();
  timer_ = loop_.after(kTick, [this] { measure(); });
  const auto cpu = meter_.read();
  if (!cpu) {
    // E.g. the group is gone with its service: what is not known is not told.
    if (report_.utilisation) log_warning("processor time: {}", cpu.error().message);
    readings_.clear();
    report_.utilisation.reset();
    report_.cores.reset();
    return;
  }
  readings_.push_back({now, *cpu});
  while (readings_.size() > 2 && readings_[1].at <= now - options_.window) readings_.pop_front();
  report_.cores = cpu->cores;
  const Reading& first = readings_.front();
  if (now <= first.at || cpu->cores <= 0) return;
  const double used = static_cast<double>(cpu->used - first.cpu.used);
  report_.utilisation =
      std::clamp(used / (static_cast<double>(now - first.at) * cpu->cores), 0.0, 1.0);
}

proto::LoadReport Agent::report() {
  // Counting looks at every connection: not more often than there is something new to tell.
  const Nanos now = now_ns();
  if (!options_.ports.empty() && now - measured_at_ >= kTick) {
    measured_at_ = now;
    uint32_t connections = 0;
    uint32_t queue = 0;
    bool known = true;
    for (const uint16_t port : options_.ports) {
      const auto count = counter_.count(port);
      known = known && count.has_value();
      connections += count ? count->established : 0;
      queue += count ? count->accept_queue : 0;
    }
    report_.connections = known ? std::optional(connections) : std::nullopt;
    report_.accept_queue = known ? std::optional(queue) : std::nullopt;
  }
  if (const int64_t latency = latency_us_; latency >= 0)
    report_.latency_us = static_cast<uint32_t>(std::min<int64_t>(latency, UINT32_MAX));
  proto::LoadReport report = report_;
  report.number = answered_ + 1;
  return report;
}

// The share of the capacity that is free; never 0 %, which would drain the instance.
std::string Agent::check_text() {
  const proto::LoadReport now = report();
  if (!now.utilisation) return "up\n";
  return fmt::format("{}%\n", std::max(1L, std::lround(100 * (1 - *now.utilisation))));
}

Result<std::string> Agent::answer(std::string_view request) {
  Result<uint64_t> nonce = fail(ErrorCode::kInvalid, "there is no secret");
  for (const proto::LoadSecret& secret : secrets_) {
    nonce = proto::decode_load_request(request, secret);
    if (nonce) return proto::encode_load_report(report(), *nonce, secret);
  }
  return Unexpected(nonce.error());
}

void Agent::on_ready(uint32_t /*epoll_events*/) {
  char datagram[proto::kLoadReportSize + 1];
  for (int i = 0; i < kDatagramsPerTurn; ++i) {
    io::Address from;
    from.length = sizeof from.storage;
    const ssize_t got = recvfrom(socket_.get(), datagram, sizeof datagram, 0,
                                 reinterpret_cast<sockaddr*>(&from.storage), &from.length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;
    const auto said = answer({datagram, static_cast<size_t>(got)});
    if (!said) {
      // Loud once, or a mistaken secret is hard to find; not for every datagram of a flood.
      if (refused_++ == 0) log_warning("refused: {} from {}", said.error().message, from.text());
      continue;
    }
    ++answered_;
    [[maybe_unused]] const auto sent =
        sendto(socket_.get(), said->data(), said->size(), 0,
               reinterpret_cast<const sockaddr*>(&from.storage), from.length);
  }
  loop_.again(this, EPOLLIN);
}

}  // namespace ballast::lb
