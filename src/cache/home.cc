// SPDX-License-Identifier: Apache-2.0
// Writes: a write is let through once no node can serve an older value of its keys. Also the way
// out: what is to be done is queued while state changes and carried out afterwards, so that an
// answer given from within a call (same process) never meets a half-done change.
#include "cache/home.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "cache/home_impl.h"
#include "cache/sabotage.h"

namespace ballast::cache {

Home::Impl::Impl(HomeConfig config, HomeOutput& output) : config_(config), output_(output) {
#if !defined(BALLAST_SABOTAGE_SWITCHES)
  if constexpr (sabotage.any()) {
    log_error("SABOTAGED BUILD: a rule of the coherence protocol is off; for tests only");
  }
#endif
}

void Home::Impl::drain() {
  if (draining_) return;
  draining_ = true;
  while (!effects_.empty()) {
    Effect effect = std::move(effects_.front());
    effects_.pop_front();
    deliver(effect);
  }
  draining_ = false;
  collect();
}

void Home::Impl::deliver(Effect& effect) {
  switch (effect.kind) {
    case Effect::Kind::kSend:
      output_.send(effect.id, std::move(effect.message));
      return;
    case Effect::Kind::kRead:
      output_.read(effect.id, effect.key, effect.commands);
      return;
    case Effect::Kind::kPing:
      output_.ping(effect.id);
      return;
    case Effect::Kind::kReady:
      auto it = arrival_of_.find(effect.id);
      // Cancelled meanwhile, or its write_begin is under way and says so itself.
      if (it == arrival_of_.end() || it->second == beginning_) return;
      finish_release(it->second);
      output_.write_ready(effect.id);
  }
}

Entry* Home::Impl::entry_for(HashedKey key) {
  if (Entry* entry = entries_.find(key)) return entry;
  auto fresh = std::make_unique<Entry>();
  fresh->key = key.key;
  fresh->hash = key.hash;
  fresh->version = version_;
  fresh->index = all_.size();
  Entry* entry = entries_.insert(std::move(fresh));
  all_.push_back(entry);
  return entry;
}

void Home::Impl::forget_if_unused(Entry* entry) {
  if (entry->unused || !entry->holders.empty() || !entry->waiting.empty()) return;
  entry->unused = true;
  unused_.push_back(entry);
}

void Home::Impl::collect() {
  while (!unused_.empty()) {
    Entry* entry = unused_.back();
    unused_.pop_back();
    entry->unused = false;
    if (!entry->holders.empty() || !entry->waiting.empty()) continue;
    void_read(entry);
    if (entry->pending) std::erase(pending_, entry);
    all_[entry->index] = all_.back();
    all_[entry->index]->index = entry->index;
    all_.pop_back();
    entries_.take(entry);
  }
}

bool Home::Impl::may_hold(const Holder& holder, Nanos now) const {
  if (!holder.value_out()) return false;
  const NodeState* state = find_node(holder.node);
  return state != nullptr && state->generation == holder.generation && now < state->lease_until;
}

// Somebody changes the object: what is being read is out of date, what is held must go. True if a
// node may still serve an older value.
bool Home::Impl::change(Entry* entry, Nanos now) {
  if (sabotage.skip_phase1) return false;
  if (entry->holders.empty()) return false;
  purge_void(entry);
  entry->version = ++version_;
  bool held = false;
  for (Holder& holder : entry->holders) {
    holder.wanted = holder.commands;
    if (!may_hold(holder, now)) continue;
    held = true;
    if (holder.asked <= holder.filled) invalidate(entry, holder, now);
  }
  return held && !sabotage.skip_lease_wait;
}

bool Home::Impl::write_begin(std::span<const std::string_view> keys,
                             std::span<const uint64_t> hashes, uint64_t token, Nanos now) {
  now_ = now;
  for (const uint64_t hash : hashes) ++in_flight_[bucket(hash)];
  bool wait = !open_ || !flushes_waiting_.empty();
  if (!entries_.empty()) {
    for (size_t i = 0; i < keys.size(); ++i) {
      Entry* entry = entries_.find({keys[i], hashes[i]});
      if (entry == nullptr) continue;
      wait |= change(entry, now) || !entry->waiting.empty();
      forget_if_unused(entry);
    }
  }
  if (wait) {
    ++stats_.writes_delayed;
    queue_write(keys, hashes, token);
    return begin_waiting(token);
  }
  if (!effects_.empty() || !unused_.empty()) drain();
  return true;
}

void Home::Impl::queue_write(std::span<const std::string_view> keys,
                             std::span<const uint64_t> hashes, uint64_t token) {
  const uint64_t arrival = ++arrivals_;
  arrival_of_[token] = arrival;
  WaitingWrite& write = waiting_[arrival];
  write.token = token;
  for (size_t i = 0; i < keys.size(); ++i) {
    write.buckets.push_back(bucket(hashes[i]));
    Entry* entry = entry_for({keys[i], hashes[i]});
    if (!entry->waiting.empty() && entry->waiting.back() == arrival) continue;  // a key given twice
    entry->waiting.push_back(arrival);
    write.entries.push_back(entry);
  }
}

// Carries out what write_begin queued. If the answers came from within, the write need not wait.
bool Home::Impl::begin_waiting(uint64_t token) {
  if (draining_) return false;
  const uint64_t arrival = arrival_of_.at(token);
  beginning_ = arrival;
  drain();
  beginning_ = 0;
  auto it = waiting_.find(arrival);
  if (it == waiting_.end() || !it->second.released) return false;
  finish_release(arrival);
  drain();
  return true;
}

bool Home::Impl::can_release(uint64_t arrival, const WaitingWrite& write, Nanos now) {
  if (!open_ || write.released) return false;
  if (!flushes_waiting_.empty() && flushes_waiting_.begin()->first < arrival) return false;
  if (write.all) return waiting_.begin()->first == arrival;
  for (const Entry* entry : write.entries) {
    if (entry->waiting.front() != arrival) return false;
    if (sabotage.skip_lease_wait) continue;
    for (const Holder& holder : entry->holders) {
      if (may_hold(holder, now)) return false;
    }
  }
  return true;
}

// The write leaves its queues only when it is handed out: none behind it may overtake it.
void Home::Impl::finish_release(uint64_t arrival) {
  auto it = waiting_.find(arrival);
  if (it->second.all) ++flushes_in_flight_;
  forget_write(it);
}

void Home::Impl::forget_write(std::map<uint64_t, WaitingWrite>::iterator write) {
  const uint64_t arrival = write->first;
  const std::vector<Entry*> entries = std::move(write->second.entries);
  const bool all = write->second.all;
  arrival_of_.erase(write->second.token);
  flushes_waiting_.erase(arrival);
  waiting_.erase(write);
  for (Entry* entry : entries) {
    std::erase(entry->waiting, arrival);
    forget_if_unused(entry);
    settle(entry, now_);
  }
  if (all || !flushes_waiting_.empty()) settle_all(now_);
}

// Lets the write at the head of the entry's queue through, if it may go.
void Home::Impl::settle(Entry* entry, Nanos now) {
  if (entry->waiting.empty()) return;
  auto write = waiting_.find(entry->waiting.front());
  if (can_release(write->first, write->second, now)) release(write->second);
}

void Home::Impl::settle_all(Nanos now) {
  for (auto& [arrival, write] : waiting_) {
    if (can_release(arrival, write, now)) release(write);
  }
}

void Home::Impl::release(WaitingWrite& write) {
  write.released = true;
  effects_.push_back({Effect::Kind::kReady, write.token});
}

void Home::Impl::write_end(std::span<const std::string_view> keys, std::span<const uint64_t> hashes,
                           Nanos now) {
  now_ = now;
  for (const uint64_t hash : hashes) {
    BALLAST_CHECK(in_flight_[bucket(hash)] > 0);
    --in_flight_[bucket(hash)];
  }
  if (entries_.empty()) return;
  for (size_t i = 0; i < keys.size(); ++i) {
    Entry* entry = entries_.find({keys[i], hashes[i]});
    if (entry != nullptr) want_fill(entry, now);
  }
  if (!effects_.empty()) drain();
}

bool Home::Impl::write_cancel(uint64_t token) {
  auto it = arrival_of_.find(token);
  if (it == arrival_of_.end() || it->second == beginning_) return false;
  auto write = waiting_.find(it->second);
  for (const uint64_t at : write->second.buckets) --in_flight_[at];
  const std::vector<Entry*> entries = write->second.entries;
  forget_write(write);
  for (Entry* entry : entries) want_fill(entry, now_);
  drain();
  return true;
}

bool Home::Impl::flush_begin(uint64_t token, Nanos now) {
  now_ = now;
  drop_all(now);
  update_open(now);
  if (open_ && waiting_.empty()) {
    ++flushes_in_flight_;
    drain();
    return true;
  }
  const uint64_t arrival = ++arrivals_;
  arrival_of_[token] = arrival;
  WaitingWrite& write = waiting_[arrival];
  write.token = token;
  write.all = true;
  flushes_waiting_[arrival] = token;
  ++stats_.writes_delayed;
  return begin_waiting(token);
}

void Home::Impl::flush_end(Nanos now) {
  now_ = now;
  BALLAST_CHECK(flushes_in_flight_ > 0);
  --flushes_in_flight_;
  retry_pending(now);
  drain();
}

bool Home::Impl::write_waits(std::string_view key, uint64_t hash) const {
  if (waiting_.empty()) return false;
  if (!flushes_waiting_.empty()) return true;
  const Entry* entry = entries_.find({key, hash});
  return entry != nullptr && !entry->waiting.empty();
}

HomeStats Home::Impl::stats() const {
  HomeStats stats = stats_;
  stats.entries = entries_.size();
  stats.waiting = waiting_.size();
  return stats;
}

Home::Home(HomeConfig config, HomeOutput& output) : impl_(std::make_unique<Impl>(config, output)) {}
Home::~Home() = default;
bool Home::write_begin(std::span<const std::string_view> keys, std::span<const uint64_t> hashes,
                       uint64_t token, Nanos now) {
  return impl_->write_begin(keys, hashes, token, now);
}
void Home::write_end(std::span<const std::string_view> keys, std::span<const uint64_t> hashes,
                     Nanos now) {
  impl_->write_end(keys, hashes, now);
}
bool Home::write_cancel(uint64_t token) { return impl_->write_cancel(token); }
bool Home::flush_begin(uint64_t token, Nanos now) { return impl_->flush_begin(token, now); }
void Home::flush_end(Nanos now) { impl_->flush_end(now); }
bool Home::write_waits(std::string_view key, uint64_t hash) const {
  return impl_->write_waits(key, hash);
}
void Home::on_fenced(bool unknown_history, Nanos now) { impl_->on_fenced(unknown_history, now); }
void Home::on_lost(Nanos now) { impl_->on_lost(now); }
bool Home::ready() const { return impl_->ready(); }
void Home::on_message(Incarnation node, ToHome message, Nanos now) {
  impl_->on_message(node, std::move(message), now);
}
void Home::on_node_gone(Incarnation node) { impl_->on_node_gone(node); }
void Home::on_read_begun(uint64_t read_id) { impl_->on_read_begun(read_id); }
void Home::on_read(uint64_t read_id, int64_t ttl_ms, std::span<const std::string_view> replies,
                   Nanos now) {
  impl_->on_read(read_id, ttl_ms, replies, now);
}
void Home::on_pong(uint64_t ping_id, Nanos now) { impl_->on_pong(ping_id, now); }
void Home::on_push(std::string_view key, uint64_t hash, Nanos now) {
  impl_->on_push(key, hash, now);
}
void Home::on_push_all(Nanos now) { impl_->on_push_all(now); }
void Home::tick(Nanos now) { impl_->tick(now); }
HomeStats Home::stats() const { return impl_->stats(); }

}  // namespace ballast::cache
