// SPDX-License-Identifier: Apache-2.0
#include "lb/decap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace ballast::lb {
namespace {

// A quarter of TCP's shortest time before it sends again.
constexpr Nanos kPeersInterval = 50 * kMillisecond;

HostAddress host_of(const bl_balancer_key& key) {
  HostAddress host;
  std::ranges::copy(key.address.word, host.word.begin());
  host.family = key.family;
  return host;
}

bl_balancer_key key_of(const HostAddress& host) {
  bl_balancer_key key{};
  key.address = bytes_of(host);
  key.family = host.family;
  return key;
}

}  // namespace

Result<std::unique_ptr<Decap>> Decap::create(io::Loop& loop, const DecapOptions& options) {
  if (options.balancers.size() > BL_MOST_BALANCERS)
    return fail(ErrorCode::kInvalid, fmt::format("{} balancers; there may be {}",
                                                 options.balancers.size(), int{BL_MOST_BALANCERS}));
  auto program = loader::DecapProgram::load();
  if (!program) return Unexpected(program.error());
  std::unique_ptr<Decap> made(new Decap(loop, std::move(*program)));
  for (const HostAddress& balancer : options.balancers) {
    if (const Result<> put = made->program_.balancers().set(key_of(balancer), 1); !put)
      return Unexpected(put.error());
  }
  auto neighbours = Neighbours::create(loop, [decap = made.get()] {
    if (const Result<> found = decap->find_peers(); !found)
      log_warning("{}", found.error().message);
  });
  if (!neighbours) return Unexpected(neighbours.error());
  made->neighbours_ = std::move(*neighbours);
  auto attached =
      attach_all(made->program_.fd(),
                 {.interfaces = options.interfaces, .pins = options.pins, .keep = options.keep});
  if (!attached) return Unexpected(attached.error());
  made->attached_ = std::move(*attached);
  made->find_peers_again();
  return made;
}

Decap::~Decap() { loop_.cancel(timer_); }

Result<> Decap::find_peers() {
  std::vector<std::pair<bl_balancer_key, bl_peer>> seen;
  const Result<> read = program_.peers().each(
      [&](const bl_balancer_key& key, const bl_peer& peer) { seen.emplace_back(key, peer); });
  if (!read) return read;
  for (const auto& [key, peer] : seen) {
    const HostAddress host = host_of(key);
    if (peers_.insert(host).second) neighbours_->watch(host);
    const auto hop = neighbours_->find(host);
    if (!hop || !hop->mac) continue;
    bl_peer now{};
    now.ifindex = hop->ifindex;
    std::ranges::copy(*hop->mac, now.mac);
    std::ranges::copy(hop->source_mac, now.source_mac);
    if (std::memcmp(&now, &peer, sizeof(now)) == 0) continue;
    if (const Result<> put = program_.peers().set(key, now); !put) return put;
  }
  return {};
}

void Decap::find_peers_again() {
  if (const Result<> found = find_peers(); !found) log_warning("{}", found.error().message);
  timer_ = loop_.after(kPeersInterval, [this] { find_peers_again(); });
}

Result<std::vector<DecapCount>> Decap::counts() const {
  std::vector<DecapCount> counts;
  for (uint32_t i = 0; i < BL_DECAP_COUNTERS; ++i) {
    const auto sum = program_.counters().sum(i);
    if (!sum) return Unexpected(sum.error());
    const loader::CounterName& name = loader::decap_counter_names()[i];
    counts.push_back({name.name, name.words, *sum});
  }
  return counts;
}

}  // namespace ballast::lb
