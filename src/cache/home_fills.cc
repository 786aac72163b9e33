// SPDX-License-Identifier: Apache-2.0
// Admissions and fills: a holder is registered before the value is read, the read does not overlap
// a write, and a reply that a change has overtaken is thrown away.
#include <algorithm>
#include <bit>

#include "balance/hash.h"
#include "cache/home_impl.h"
#include "cache/sabotage.h"

namespace ballast::cache {

namespace {

HashedKey hashed(std::string_view key) { return {key, balance::key_hash(key)}; }

// Errors are not cached: they may be about the connection, not the object.
bool cacheable(std::string_view reply, size_t max_reply) {
  return !reply.empty() && reply.size() <= max_reply && reply[0] != '-' && reply[0] != '!';
}

}  // namespace

void Home::Impl::purge_void(Entry* entry) {
  std::erase_if(entry->holders, [&](const Holder& holder) {
    const NodeState* state = find_node(holder.node);
    return state == nullptr || state->generation != holder.generation;
  });
}

// Null if the admission is an old one that came late.
Holder* Home::Impl::holder_for(Entry* entry, Incarnation node, uint64_t copy_id) {
  const uint64_t generation = nodes_.at(node)->generation;
  for (Holder& holder : entry->holders) {
    if (holder.node != node) continue;
    if (holder.copy_id > copy_id && holder.generation == generation) return nullptr;
    if (holder.copy_id != copy_id || holder.generation != generation) {
      // The node made a new placeholder, so it has dropped the former copy.
      nodes_.at(node)->unanswered.erase(entry->key);
      holder = Holder{.node = node, .generation = generation, .copy_id = copy_id};
    }
    return &holder;
  }
  entry->holders.push_back({.node = node, .generation = generation, .copy_id = copy_id});
  return &entry->holders.back();
}

// The command's bit among the entry's, or -1 if there is no room.
int Home::Impl::command_bit(Entry* entry, const CachedCommand& command) {
  auto& commands = entry->commands;
  auto it = std::find(commands.begin(), commands.end(), command);
  if (it != commands.end()) return static_cast<int>(it - commands.begin());
  if (commands.size() < kMaxCommands) {
    commands.push_back(command);
    return static_cast<int>(commands.size() - 1);
  }
  uint32_t used = entry->read_mask;
  for (const Holder& holder : entry->holders) used |= holder.commands;
  const int free = std::countr_one(used);
  if (free >= static_cast<int>(kMaxCommands)) return -1;
  commands[static_cast<size_t>(free)] = command;
  return free;
}

void Home::Impl::on_admit(Incarnation node, Admit message, Nanos now) {
  const NodeState& state = node_for(node, now);
  if (now >= state.lease_until) return;  // the node asks again once it has a lease
  ++stats_.admissions;
  const HashedKey key = hashed(message.key);
  if (entries_.size() >= config_.max_entries && entries_.find(key) == nullptr) {
    ++stats_.refusals;
    send(node, Refuse{std::move(message.key), message.copy_id});
    return;
  }
  Entry* entry = entry_for(key);
  Holder* holder = holder_for(entry, node, message.copy_id);
  if (holder == nullptr) return;
  const int bit = command_bit(entry, message.command);
  if (bit < 0) {
    // The copy itself stays; a fill without a reply says that this command is not cached.
    ++stats_.refusals;
    send(node, Fill{std::move(message.key),
                    std::move(message.command),
                    {},
                    message.copy_id,
                    entry->version,
                    -1,
                    0});
    return;
  }
  holder->commands |= 1u << bit;
  holder->wanted |= 1u << bit;
  want_fill(entry, now);
}

void Home::Impl::on_ack(Incarnation node, const Ack& message, Nanos now) {
  if (message.epoch != config_.epoch) return;
  NodeState& state = node_for(node, now);
  auto unanswered = state.unanswered.find(message.key);
  if (unanswered != state.unanswered.end() && message.version >= unanswered->second.version) {
    state.unanswered.erase(unanswered);
  }
  Entry* entry = entries_.find(hashed(message.key));
  if (entry == nullptr) return;
  for (Holder& holder : entry->holders) {
    if (holder.node == node) holder.acked = std::max(holder.acked, message.version);
  }
  settle(entry, now);
}

void Home::Impl::on_release(Incarnation node, const Release& message, Nanos now) {
  Entry* entry = entries_.find(hashed(message.key));
  if (entry == nullptr) return;
  const size_t erased = std::erase_if(entry->holders, [&](const Holder& holder) {
    return holder.node == node && holder.copy_id == message.copy_id;
  });
  if (erased == 0) return;
  node_for(node, now).unanswered.erase(message.key);
  settle(entry, now);
  forget_if_unused(entry);
}

void Home::Impl::invalidate(Entry* entry, Holder& holder, Nanos now) {
  holder.asked = entry->version;
  ++stats_.invalidations;
  auto [it, fresh] = nodes_.at(holder.node)->unanswered.try_emplace(entry->key);
  it->second.version = entry->version;
  it->second.last = now;
  if (fresh) it->second.first = now;
  send(holder.node, Invalidate{entry->key, entry->version});
}

// Reads for the holders that want it, now or as soon as no write is in the way.
void Home::Impl::want_fill(Entry* entry, Nanos now) {
  if (entry->read_id != 0) return;
  uint32_t wanted = 0;
  for (const Holder& holder : entry->holders) wanted |= holder.wanted;
  if (wanted == 0) return;
  const bool busy = !entry->waiting.empty() || in_flight_[bucket(entry->hash)] != 0 ||
                    flushes_in_flight_ != 0 || !flushes_waiting_.empty();
  if (open_ && (!busy || sabotage.read_during_write)) {
    begin_read(entry, now);
  } else if (!entry->pending) {
    entry->pending = true;
    entry->pending_since = now;
    pending_.push_back(entry);
  }
}

void Home::Impl::begin_read(Entry* entry, Nanos now) {
  purge_void(entry);
  uint32_t mask = 0;
  for (Holder& holder : entry->holders) {
    const NodeState& state = *nodes_.at(holder.node);
    holder.reading = now < state.lease_until ? holder.wanted : 0;
    holder.ttl_seq = state.last_seq;
    mask |= holder.reading;
  }
  if (mask == 0) {
    forget_if_unused(entry);
    return;
  }
  entry->read_id = ++next_read_;
  entry->read_version = entry->version;
  entry->read_mask = mask;
  entry->read_begun = false;
  reads_[entry->read_id] = entry;
  Effect read{Effect::Kind::kRead, entry->read_id};
  read.key = entry->key;
  for (size_t i = 0; i < entry->commands.size(); ++i) {
    if ((mask >> i & 1) != 0) read.commands.push_back(entry->commands[i]);
  }
  effects_.push_back(std::move(read));
}

void Home::Impl::void_read(Entry* entry) {
  if (entry->read_id != 0) reads_.erase(entry->read_id);
  entry->read_id = 0;
  entry->read_mask = 0;
}

void Home::Impl::on_read_begun(uint64_t read_id) {
  reports_begun_ = true;
  auto it = reads_.find(read_id);
  if (it != reads_.end()) it->second->read_begun = true;
}

void Home::Impl::on_read(uint64_t read_id, int64_t ttl_ms,
                         std::span<const std::string_view> replies, Nanos now) {
  now_ = now;
  auto it = reads_.find(read_id);
  if (it == reads_.end()) return;
  Entry* entry = it->second;
  const bool current = entry->read_version == entry->version || sabotage.ignore_fill_version;
  if (current) fill(entry, ttl_ms, replies, now);
  void_read(entry);
  if (current) {
    entry->discards = 0;
  } else if (++entry->discards >= kMaxDiscards) {
    refuse_unfilled(entry);  // written too often to be worth reading
  }
  want_fill(entry, now);
  drain();
}

// The node's clock may be slower than the shard's, in the proportion that the margin is of a lease.
int64_t Home::Impl::less_drift(int64_t ttl_ms) const {
  const Nanos parts = config_.lease / std::max<Nanos>(config_.drift_margin, 1);
  return ttl_ms - ttl_ms / std::max<Nanos>(parts, 1);
}

void Home::Impl::fill(Entry* entry, int64_t ttl_ms, std::span<const std::string_view> replies,
                      Nanos now) {
  const int64_t ttl = ttl_ms < 0 ? -1 : less_drift(ttl_ms);  // a missing key is cached as missing
  purge_void(entry);
  for (Holder& holder : entry->holders) {
    const uint32_t bits = holder.reading;
    holder.reading = 0;
    if (bits == 0 || now >= nodes_.at(holder.node)->lease_until) continue;
    size_t position = 0;
    for (size_t i = 0; i < entry->commands.size(); ++i) {
      if ((entry->read_mask >> i & 1) == 0) continue;
      const size_t at = position++;
      if ((bits >> i & 1) == 0 || at >= replies.size()) continue;
      std::string_view reply = replies[at];
      if (!cacheable(reply, config_.max_reply)) {
        reply = {};
        ++stats_.refusals;
      }
      ++stats_.fills;
      send(holder.node, Fill{entry->key, entry->commands[i], std::string(reply), holder.copy_id,
                             entry->read_version, ttl, holder.ttl_seq});
    }
    holder.wanted &= ~bits;
    holder.filled = entry->read_version;
  }
}

void Home::Impl::refuse_unfilled(Entry* entry) {
  std::erase_if(entry->holders, [&](const Holder& holder) {
    if (holder.wanted == 0 || may_hold(holder, now_)) return false;
    ++stats_.refusals;
    send(holder.node, Refuse{entry->key, holder.copy_id});
    return true;
  });
  entry->discards = 0;
  settle(entry, now_);
  forget_if_unused(entry);
}

// Somebody changed the object, perhaps by a write of this home. A push that comes before the first
// reply of an outstanding read is older than that read.
void Home::Impl::on_push(std::string_view key, uint64_t hash, Nanos now) {
  now_ = now;
  ++stats_.pushes;
  Entry* entry = entries_.find({key, hash});
  if (entry == nullptr) return;
  const bool read_is_newer = entry->read_id != 0 && reports_begun_ && !entry->read_begun &&
                             entry->read_version == entry->version;
  const bool read_is_older = entry->read_id != 0 && !read_is_newer;
  const bool held = std::any_of(entry->holders.begin(), entry->holders.end(),
                                [&](const Holder& holder) { return may_hold(holder, now); });
  if (!held && !read_is_older) return;
  change(entry, now);
  if (read_is_newer) entry->read_version = entry->version;
  want_fill(entry, now);
  forget_if_unused(entry);
  drain();
}

void Home::Impl::on_push_all(Nanos now) {
  now_ = now;
  ++stats_.pushes;
  drop_all(now);
  update_open(now);
  drain();
}

}  // namespace ballast::cache
