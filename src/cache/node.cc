// SPDX-License-Identifier: Apache-2.0
// The node's requests, messages and time. Messages are queued while state changes and sent
// afterwards: the home may answer from within the call.
#include "cache/node.h"

#include <algorithm>

#include "balance/hash.h"
#include "base/log.h"
#include "cache/node_impl.h"
#include "cache/sabotage.h"

namespace ballast::cache {

Node::Impl::Impl(NodeConfig config, NodeOutput& output)
    : config_(config),
      output_(output),
      ask_again_(config.lease / 4),
      shards_(config.shards),
      load_(config.window),
      admission_({.objects = config.objects,
                  .bytes = config.memory,
                  .half_life = config.window / 2,
                  .seed = config.seed}) {
#if !defined(BALLAST_SABOTAGE_SWITCHES)
  if constexpr (sabotage.any()) {
    log_error("SABOTAGED BUILD: a rule of the coherence protocol is off; for tests only");
  }
#endif
}

void Node::Impl::flush_outbox() {
  if (sending_) return;
  sending_ = true;
  for (size_t i = 0; i < outbox_.size(); ++i) {
    Outgoing next = std::move(outbox_[i]);
    output_.send(next.shard, std::move(next.message));
  }
  outbox_.clear();
  sending_ = false;
}

const Node::Reply* Node::Impl::lookup(const Read& read, uint32_t weight, Nanos now) {
  load_.count(now);
  const HashedKey key{read.key, read.hash};
  Copy* copy = copies_.find(key);
  if (copy == nullptr || copy->shard != read.shard) {
    ++stats_.misses;
    if (copy == nullptr) consider(read.shard, key, read.command, weight, now);
    if (!outbox_.empty()) flush_outbox();
    return nullptr;
  }
  admission_.observe(read.hash, weight);
  ++copy->reads;
  for (const CachedReply& slot : copy->replies) {
    if (slot.command != read.command) continue;
    if (!slot.filled || now >= shards_[read.shard].lease_until || now >= slot.expires) break;
    ++stats_.hits;
    if (copy->asked_at != 0) [[unlikely]]
      turned_hot_.record(now - std::exchange(copy->asked_at, 0));
    return &slot.reply;
  }
  return miss(copy, read.command, now);
}

// The key has a copy, but this command has no reply in it that may be served.
const Node::Reply* Node::Impl::miss(Copy* copy, std::string_view command, Nanos now) {
  ++stats_.misses;
  if (!lease_runs(copy->shard, now)) return nullptr;
  auto slot = std::find_if(copy->replies.begin(), copy->replies.end(),
                           [&](const CachedReply& s) { return s.command == command; });
  if (slot == copy->replies.end()) {
    if (copy->replies.size() >= config_.max_commands) return nullptr;
    copy->replies.emplace_back().command = command;
    slot = std::prev(copy->replies.end());
    const size_t added = sizeof(CachedReply) + command.size();
    copy->bytes += added;
    bytes_ += added;
  }
  if (slot->filled) clear(*copy, *slot);  // expired
  if (now < slot->ask_after) return nullptr;
  slot->ask_after = now + ask_again_;
  send(copy->shard, Admit{copy->key, slot->command, copy->copy_id});
  flush_outbox();
  return nullptr;
}

Node::Holding Node::Impl::holding(std::string_view key, uint64_t hash, std::string_view command,
                                  Nanos now) const {
  const Copy* copy = copies_.find({key, hash});
  if (copy == nullptr) return Holding::kNothing;
  for (const CachedReply& slot : copy->replies) {
    if (slot.command != command) continue;
    const bool good = slot.filled && now < slot.expires && lease_runs(copy->shard, now);
    return good ? Holding::kReply : Holding::kPlaceholder;
  }
  return Holding::kNothing;
}

void Node::Impl::on_message(uint32_t shard, ToNode message, Nanos now) {
  ShardState& state = shards_[shard];
  if (message.epoch < state.epoch) return;
  if (message.epoch > state.epoch) {
    // Another home: what the former one gave is over, its lease with it.
    drop_shard(shard);
    state.epoch = message.epoch;
    state.lease_until = std::numeric_limits<Nanos>::min();
    state.drop_version = 0;
  }
  if (auto* fill = std::get_if<Fill>(&message.body)) {
    on_fill(shard, *fill, now);
  } else if (auto* refuse = std::get_if<Refuse>(&message.body)) {
    on_refuse(shard, *refuse, now);
  } else if (auto* invalidate = std::get_if<Invalidate>(&message.body)) {
    on_invalidate(shard, *invalidate);
  } else if (auto* lease = std::get_if<Lease>(&message.body)) {
    on_lease(shard, *lease, now);
  } else {
    on_drop_all(shard, std::get<DropAll>(message.body));
  }
  flush_outbox();
}

void Node::Impl::on_fill(uint32_t shard, Fill& fill, Nanos now) {
  Copy* copy = copies_.find({fill.key, balance::key_hash(fill.key)});
  if (copy == nullptr || copy->shard != shard ||
      (copy->copy_id != fill.copy_id && !sabotage.ignore_copy_id)) {
    ++stats_.fills_dropped;
    send(shard, Release{std::move(fill.key), fill.copy_id});  // the home's record is out of date
    return;
  }
  if (fill.version < copy->version && !sabotage.ignore_fill_version) {
    ++stats_.fills_dropped;
    return;
  }
  for (CachedReply& slot : copy->replies) {
    if (slot.version < fill.version) clear(*copy, slot);
  }
  copy->version = std::max(copy->version, fill.version);
  auto slot = std::find_if(copy->replies.begin(), copy->replies.end(),
                           [&](const CachedReply& s) { return s.command == fill.command; });
  if (slot == copy->replies.end()) {
    ++stats_.fills_dropped;
    return;
  }
  ++stats_.fills;
  const Nanos expires = expiry(shards_[shard], fill);
  const bool usable =
      !fill.reply.empty() && fill.reply.size() <= config_.max_reply && now < expires;
  if (!worth_refilling(*copy, fill.version)) {
    back_off(copy->hash, now);
    release(copy);
  } else if (usable && put(*copy, *slot, fill, expires)) {
    make_room();
  } else {
    set_uncacheable(copy, *slot, now);
  }
}

// This command's reply is not for keeping. A copy with no other reply, had or hoped for, goes.
void Node::Impl::set_uncacheable(Copy* copy, CachedReply& slot, Nanos now) {
  clear(*copy, slot);
  slot.ask_after = now + config_.lease;
  const bool useful =
      std::any_of(copy->replies.begin(), copy->replies.end(), [&](const CachedReply& other) {
        return other.filled || other.ask_after <= now + ask_again_;
      });
  if (useful) return;
  back_off(copy->hash, now);
  release(copy);
}

Nanos Node::Impl::expiry(const ShardState& shard, const Fill& fill) const {
  if (fill.ttl_ms < 0) return std::numeric_limits<Nanos>::max();
  const bool known = fill.ttl_seq != 0 && fill.ttl_seq <= shard.seq &&
                     shard.seq - fill.ttl_seq < ShardState::kRemembered;
  if (!known) return 0;
  constexpr int64_t kLongest = 1'000'000'000'000;  // ms; keeps the product in range
  return shard.sent[fill.ttl_seq % ShardState::kRemembered] +
         std::min(fill.ttl_ms, kLongest) * kMillisecond;
}

void Node::Impl::on_refuse(uint32_t shard, const Refuse& refuse, Nanos now) {
  Copy* copy = copies_.find({refuse.key, balance::key_hash(refuse.key)});
  if (copy == nullptr || copy->shard != shard || copy->copy_id != refuse.copy_id) return;
  back_off(copy->hash, now);
  forget(copy);
}

void Node::Impl::on_invalidate(uint32_t shard, const Invalidate& invalidate) {
  ++stats_.invalidations;
  Copy* copy = copies_.find({invalidate.key, balance::key_hash(invalidate.key)});
  if (copy != nullptr && copy->shard == shard) {
    for (CachedReply& slot : copy->replies) {
      if (slot.version < invalidate.version) clear(*copy, slot);
    }
    copy->version = std::max(copy->version, invalidate.version);
  }
  send(shard, Ack{invalidate.key, invalidate.version, shards_[shard].epoch});
}

void Node::Impl::on_lease(uint32_t shard, const Lease& lease, Nanos now) {
  ShardState& state = shards_[shard];
  if (lease.seq == 0 || lease.seq > state.seq || state.seq - lease.seq >= ShardState::kRemembered) {
    return;
  }
  const Nanos from =
      sabotage.count_from_grant ? now : state.sent[lease.seq % ShardState::kRemembered];
  const Nanos until = from + config_.lease;
  if (until <= now) return;
  if (now >= state.lease_until && !sabotage.revive_lapsed) {
    if (state.copies != 0) ++stats_.lapses;
    drop_shard(shard);
  }
  state.lease_until = std::max(state.lease_until, until);
}

void Node::Impl::on_drop_all(uint32_t shard, const DropAll& drop) {
  ShardState& state = shards_[shard];
  if (drop.version > state.drop_version) {
    state.drop_version = drop.version;
    if (!sabotage.keep_on_drop_all) drop_shard(shard);
  }
  send(shard, DropAllAck{drop.version, state.epoch});
}

void Node::Impl::renew(uint32_t shard, Nanos now) {
  ShardState& state = shards_[shard];
  ++state.seq;
  state.sent[state.seq % ShardState::kRemembered] = now;
  state.renew_at = now + config_.heartbeat;
  send(shard, Renew{state.seq});
}

void Node::Impl::on_home(uint32_t shard, bool reachable, Nanos now) {
  ShardState& state = shards_[shard];
  if (reachable && !state.reachable) renew(shard, now);
  state.reachable = reachable;
  flush_outbox();
}

void Node::Impl::tick(Nanos now) {
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    if (shards_[shard].reachable && now >= shards_[shard].renew_at) renew(shard, now);
  }
  admission_.tick(now);
  make_room();
  if (now >= clean_at_) {
    clean_at_ = now + config_.lease;
    boost::unordered::erase_if(back_offs_, [&](const auto& entry) {
      return now >= entry.second.until + 4 * config_.lease;
    });
  }
  flush_outbox();
}

NodeStats Node::Impl::stats() const {
  NodeStats stats = stats_;
  stats.copies = copies_.size();
  stats.bytes = bytes_;
  return stats;
}

Node::Node(NodeConfig config, NodeOutput& output) : impl_(std::make_unique<Impl>(config, output)) {}
Node::~Node() = default;
const Node::Reply* Node::lookup(const Read& read, uint32_t weight, Nanos now) {
  return impl_->lookup(read, weight, now);
}
Node::Holding Node::holding(std::string_view key, uint64_t hash, std::string_view command,
                            Nanos now) const {
  return impl_->holding(key, hash, command, now);
}
void Node::on_message(uint32_t shard, ToNode message, Nanos now) {
  impl_->on_message(shard, std::move(message), now);
}
void Node::on_home(uint32_t shard, bool reachable, Nanos now) {
  impl_->on_home(shard, reachable, now);
}
void Node::tick(Nanos now) { impl_->tick(now); }
uint32_t Node::load(Nanos now) const { return impl_->load(now); }
bool Node::lease_runs(uint32_t shard, Nanos now) const { return impl_->lease_runs(shard, now); }
Incarnation Node::incarnation() const { return impl_->incarnation(); }
NodeStats Node::stats() const { return impl_->stats(); }
const Histogram& Node::turned_hot() const { return impl_->turned_hot(); }
std::vector<std::pair<std::string, uint64_t>> Node::hottest(size_t n) const {
  return impl_->hottest(n);
}

}  // namespace ballast::cache
