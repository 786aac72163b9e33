// SPDX-License-Identifier: Apache-2.0
// What the balancer does: in each round it weighs and writes what changed; when an instance's
// health or next hop is another, or the configuration, it looks at all of them first.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/log.h"
#include "lb/apply.h"
#include "lb/balancer.h"
#include "lb/capture_lock.h"
#include "lb/weights.h"

namespace ballast::lb {
namespace {

// A table that went out of use is written again no sooner; a packet's time in the program is a
// thousandth of it.
constexpr Nanos kWriteSpacing = 2 * kMillisecond;
// A pass through a full table takes five seconds, a twentieth of a core.
constexpr uint32_t kAgedPerSecond = 200'000;
// To look through an empty one of a million takes a millisecond too. Who balances by what is open
// does not wait.
constexpr Nanos kPassSpacing = kSecond / 2;

bl_method method_of(model::Forwarding forwarding) {
  switch (forwarding) {
    case model::Forwarding::kL2:
      return BL_METHOD_L2;
    case model::Forwarding::kIpip:
      return BL_METHOD_IPIP;
    case model::Forwarding::kGue:
      return BL_METHOD_GUE;
    case model::Forwarding::kNat:
      return BL_METHOD_NAT;
  }
  return BL_METHOD_L2;
}

bool has_mac(const bl_instance& entry) {
  return std::ranges::any_of(entry.mac, [](uint8_t byte) { return byte != 0; });
}

// Static, so that all balancers of one configuration have the same; without whether it drains.
uint32_t ring_weight(const model::Vip& vip, const model::Instance& instance) {
  if (vip.scheduler == model::Scheduler::kEcmp) return 1;
  const double weight = instance.weight * instance.capacity * 1024;
  if (!(weight > 0)) return 0;
  return static_cast<uint32_t>(std::clamp(std::round(weight), 1.0, 0x1p30));
}

bool is_tunnel(const model::Vip& vip) {
  return vip.forwarding == model::Forwarding::kIpip || vip.forwarding == model::Forwarding::kGue;
}

// Without a route or an answer of the neighbour the last next hop stays: health alone says whether
// the instance is there.
void set_next_hop(bl_instance& entry, const std::optional<NextHop>& hop) {
  if (!hop || (!hop->mac && has_mac(entry))) return;
  entry.ifindex = hop->ifindex;
  if (hop->source.family == entry.family) entry.outer_source = bytes_of(hop->source);
  std::ranges::copy(hop->source_mac, entry.source_mac);
  if (hop->mac) std::ranges::copy(*hop->mac, entry.mac);
}

}  // namespace

bl_instance Balancer::entry_of(const Member& member, const model::Vip& vip) const {
  bl_instance entry = member.entry;
  entry.address = bytes_of(member.address);
  entry.family = member.address.family;
  entry.method = static_cast<uint8_t>(method_of(vip.forwarding));
  entry.port_be = htons(member.config.port);
  entry.mtu = vip.mtu;
  const auto hop = neighbours_->find(member.address);
  if (hop && vip.mtu == 0 && is_tunnel(vip))
    entry.mtu = static_cast<uint16_t>(std::min<uint32_t>(hop->mtu, UINT16_MAX));
  set_next_hop(entry, hop);
  return entry;
}

void Balancer::say_state(const Service& service, const Member& member, bool is_healthy,
                         bool is_up) const {
  const auto say = [&](const std::string& state) {
    log_info("vip {}: instance {} {}", service.config.name, member.name, state);
  };
  if (is_up) return say("is up");
  if (!is_healthy)
    return say("is down: its health check says " + health_->state(*member.health).last_cause);
  say(member.config.operation == model::Operation::kMaintenance ? "is in maintenance"
                                                                : "has no next hop");
}

void Balancer::look_at(const Service& service, Nanos now) {
  bool has_any = false;
  for (const uint32_t index : service.members) {
    Member& member = members_.at(index);
    member.next = entry_of(member, service.config);
    const bool is_healthy = !member.health || health_->state(*member.health).is_up();
    const bool is_up = is_healthy && member.config.operation != model::Operation::kMaintenance &&
                       has_mac(member.next);
    if (is_up && !member.is_up) member.up_since = member.was_up ? 0 : now;
    if (is_up != member.is_up) say_state(service, member, is_healthy, is_up);
    member.was_up = member.was_up && !is_up;
    member.is_up = is_up;
    has_any = has_any || is_up;
  }
  for (const uint32_t index : service.members) {
    Member& member = members_.at(index);
    // With nobody to go to, what is open is better off where it is.
    const bool is_down = !member.is_up && has_any && has_mac(member.next);
    member.next.state = is_down ? BL_INSTANCE_DOWN : BL_INSTANCE_UP;
    member.entry = member.next;
    if (const Result<> set = tables_.set_instance(index, member.entry); !set)
      log_error("vip {}: instance {}: {}", service.config.name, member.name, set.error().message);
  }
}

// Where those are that only have connections left; with somebody else of the VIP up, what a dead
// one had goes there.
void Balancer::look_at_leaving() {
  std::set<bl_vip_key, KeyLess> have_any;
  for (const auto& [index, member] : members_)
    if (member.is_up) have_any.insert(member.owner.vip);
  for (auto& [index, member] : members_) {
    if (!member.is_leaving) continue;
    set_next_hop(member.entry, neighbours_->find(member.address));
    const bool is_dead = member.health && !health_->state(*member.health).is_up();
    const bool is_down = is_dead && have_any.contains(member.owner.vip);
    member.entry.state = is_down ? BL_INSTANCE_DOWN : BL_INSTANCE_UP;
    if (const Result<> set = tables_.set_instance(index, member.entry); !set)
      log_error("instance {}, leaving: {}", member.name, set.error().message);
  }
}

void Balancer::weigh(Service& service, Nanos now) {
  std::vector<Candidate> candidates;
  for (const uint32_t index : service.members) {
    const Member& member = members_.at(index);
    Candidate& candidate = candidates.emplace_back();
    candidate.id = index;
    candidate.weight = member.config.weight;
    candidate.capacity = member.config.capacity;
    candidate.operation = member.config.operation;
    candidate.is_healthy = !member.health || health_->state(*member.health).is_up();
    candidate.has_next_hop = has_mac(member.entry);
    candidate.load = member.load ? &loads_->state(*member.load) : nullptr;
    candidate.connections = ager_.open_of(index);
    if (member.up_since != 0) candidate.up_for = now - member.up_since;
  }
  const std::vector<Weighed> weighed = service.weights.next(service.config, candidates);
  std::vector<Share> shares;
  for (size_t i = 0; i < weighed.size(); ++i) {
    Member& member = members_.at(service.members[i]);
    const bool is_frozen = weighed[i].reason == Reason::kLastHeard;
    if (is_frozen != (member.weighed.reason == Reason::kLastHeard))
      log_info("vip {}: instance {}: its load is {}", service.config.name, member.name,
               is_frozen ? "not heard: " + loads_->state(*member.load).error : "heard again");
    member.weighed = weighed[i];
    const bool gives_way = !member.is_up || member.config.operation != model::Operation::kUp;
    shares.push_back({service.members[i], weighed[i].weight,
                      ring_weight(service.config, member.config), gives_way});
  }
  if (const Result<> set = tables_.set_vip(service.key, shares); !set)
    log_error("vip {}: {}", service.config.name, set.error().message);
}

void Balancer::write() {
  const Nanos now = now_ns();
  if (now < written_at_ + kWriteSpacing) {
    loop_.cancel(write_timer_);
    write_timer_ = loop_.after(written_at_ + kWriteSpacing - now, [this] { write(); });
    return;
  }
  Writes fresh = tables_.take_writes();
  if (!fresh.is_empty()) unwritten_.push_back(std::move(fresh));
  while (!unwritten_.empty()) {
    if (const Result<> written = apply(unwritten_.front(), program_); !written) {
      ++counts_.write_errors;
      log_error("{}; tried again in the next round", written.error().message);
      return;
    }
    counts_.map_writes += unwritten_.front().size();
    written_at_ = now;
    unwritten_.erase(unwritten_.begin());
  }
}

void Balancer::react() {
  const Nanos now = now_ns();
  for (const Service& service : services_) look_at(service, now);
  look_at_leaving();
  weigh_all();
}

void Balancer::weigh_all() {
  const Nanos now = now_ns();
  for (Service& service : services_) weigh(service, now);
  write();
}

void Balancer::react_soon() {
  if (react_timer_ != io::Loop::Timer{}) return;
  react_timer_ = loop_.after(kMillisecond, [this] {
    react_timer_ = {};
    react();
  });
}

void Balancer::sample(Nanos now) {
  std::vector<Traffic::Place> places;
  for (const auto& [index, member] : members_)
    if (!member.vip.empty()) places.push_back({index, member.vip});
  if (const Result<> sampled = traffic_.sample(places, now); !sampled)
    log_error("{}", sampled.error().message);
  sampled_at_ = now;
}

void Balancer::age(Nanos now) {
  if (!ager_.is_within_pass()) {
    if (now < next_pass_) return;
    const bool is_urgent = std::ranges::any_of(services_, [](const Service& service) {
      return service.config.scheduler == model::Scheduler::kLeastConnections;
    });
    next_pass_ = is_urgent ? now : now + kPassSpacing;
  }
  const auto steps = static_cast<uint32_t>(kAgedPerSecond * uint64_t{settings_.interval_ms} / 1000);
  if (const auto stepped = ager_.step(std::max(steps, 1U)); !stepped)
    log_error("{}", stepped.error().message);
  else if (*stepped)
    release_left();
}

void Balancer::round() {
  const Nanos interval = Nanos{settings_.interval_ms} * kMillisecond;
  age(now_ns());
  ++counts_.rounds;
  weigh_all();
  const Nanos now = now_ns();
  if (now - sampled_at_ >= kSecond) {
    sample(now);
    follow(program_.fd(), attach_options(settings_), attached_);
    if (const Result<> ended = end_lost_capture(program_, settings_.pins); !ended)
      log_error("{}", ended.error().message);
  }
  next_round_ = std::max(next_round_ + interval, now);
  round_timer_ = loop_.after(next_round_ - now, [this] { round(); });
}

}  // namespace ballast::lb
