// SPDX-License-Identifier: Apache-2.0
// The table of copies: which keys deserve one, what is evicted for them, and what a copy costs.
#include <algorithm>
#include <cstring>

#include "balance/hash.h"
#include "cache/node_impl.h"
#include "proto/resp_convert.h"

namespace ballast::cache {

namespace {

constexpr uint32_t kUnreadFills = 2;  // in a row, then the copy is not worth its refills
constexpr size_t kMaxBackOffs = 1 << 14;

// The RESP2 form of a reply; false if it is malformed. Most replies are the same in both.
bool to_resp2(std::string_view resp3, std::string& resp2) {
  if (resp3[0] != '$' && resp3[0] != ':' && resp3[0] != '+') return proto::downgrade(resp3, resp2);
  resp2 = resp3;
  return true;
}

}  // namespace

// A key that is not held was read.
void Node::Impl::consider(uint32_t shard, HashedKey key, std::string_view command, uint32_t weight,
                          Nanos now) {
  if (!lease_runs(shard, now) || backing_off(key.hash, now)) return;
  const auto decision = admission_.observe(key.hash, weight);
  if (!decision.admit) return;
  if (Copy* victim = decision.victim ? copies_.find_hash(*decision.victim) : nullptr) {
    ++stats_.evictions;
    release(victim);
  }
  admit(shard, key, command, now);
}

void Node::Impl::admit(uint32_t shard, HashedKey key, std::string_view command, Nanos now) {
  auto fresh = std::make_unique<Copy>();
  fresh->key = key.key;
  fresh->hash = key.hash;
  fresh->shard = shard;
  fresh->asked_at = now;
  fresh->copy_id = ++next_copy_id_;
  fresh->index = all_.size();
  CachedReply& slot = fresh->replies.emplace_back();
  slot.command = command;
  slot.ask_after = now + ask_again_;
  // Two table slots, the object, the key, one reply.
  fresh->bytes = sizeof(Copy) + sizeof(CachedReply) + key.key.size() + command.size() + 48;
  bytes_ += fresh->bytes;
  admission_.held(key.hash, fresh->bytes);
  ++shards_[shard].copies;
  ++stats_.admissions;
  Copy* copy = copies_.insert(std::move(fresh));
  all_.push_back(copy);
  send(shard, Admit{copy->key, slot.command, copy->copy_id});
}

// Drops what does not fit and what is not hot any more.
void Node::Impl::make_room() {
  while (const auto hash = admission_.expel()) {
    Copy* copy = copies_.find_hash(*hash);
    if (copy == nullptr) continue;
    ++stats_.evictions;
    release(copy);
  }
}

void Node::Impl::forget(Copy* copy) {
  bytes_ -= copy->bytes;
  --shards_[copy->shard].copies;
  admission_.dropped(copy->hash);
  all_[copy->index] = all_.back();
  all_[copy->index]->index = copy->index;
  all_.pop_back();
  copies_.take(copy);
}

void Node::Impl::release(Copy* copy) {
  send(copy->shard, Release{copy->key, copy->copy_id});
  forget(copy);
}

void Node::Impl::drop_shard(uint32_t shard) {
  for (size_t i = all_.size(); i > 0 && shards_[shard].copies != 0; --i) {
    if (all_[i - 1]->shard == shard) forget(all_[i - 1]);
  }
}

void Node::Impl::clear(Copy& copy, CachedReply& slot) {
  copy.bytes -= slot.size;
  bytes_ -= slot.size;
  slot.bytes.reset();
  slot.size = 0;
  slot.reply = {};
  slot.filled = false;
}

bool Node::Impl::put(Copy& copy, CachedReply& slot, const Fill& fill, Nanos expires) {
  clear(copy, slot);
  std::string resp2;
  if (!to_resp2(fill.reply, resp2)) return false;
  const bool same = resp2 == fill.reply;
  slot.size = fill.reply.size() + (same ? 0 : resp2.size());
  slot.bytes = std::make_unique<char[]>(slot.size);
  std::memcpy(slot.bytes.get(), fill.reply.data(), fill.reply.size());
  slot.reply.resp3 = {slot.bytes.get(), fill.reply.size()};
  slot.reply.resp2 = slot.reply.resp3;
  if (!same) {
    char* second = slot.bytes.get() + fill.reply.size();
    std::memcpy(second, resp2.data(), resp2.size());
    slot.reply.resp2 = {second, resp2.size()};
  }
  slot.filled = true;
  slot.version = fill.version;
  slot.expires = expires;
  slot.ask_after = 0;
  copy.bytes += slot.size;
  bytes_ += slot.size;
  admission_.held(copy.hash, copy.bytes);
  return true;
}

// A copy that is changed more often than read costs the shard a read for each change.
bool Node::Impl::worth_refilling(Copy& copy, uint64_t version) {
  if (version == copy.fill_version) return true;  // another command of the same fill
  const bool first = copy.fill_version == 0;
  copy.fill_version = version;
  copy.unread_fills = first || copy.reads != 0 ? 0 : copy.unread_fills + 1;
  copy.reads = 0;
  return copy.unread_fills < kUnreadFills;
}

// Doubles with each refusal in a row, up to about a minute.
void Node::Impl::back_off(uint64_t hash, Nanos now) {
  if (back_offs_.size() >= kMaxBackOffs && !back_offs_.contains(hash)) back_offs_.clear();
  BackOff& entry = back_offs_[hash];
  entry.until = now + (config_.lease << std::min(entry.refusals, 6u));
  ++entry.refusals;
}

bool Node::Impl::backing_off(uint64_t hash, Nanos now) const {
  if (back_offs_.empty()) return false;
  auto it = back_offs_.find(hash);
  return it != back_offs_.end() && now < it->second.until;
}

std::vector<std::pair<std::string, uint64_t>> Node::Impl::hottest(size_t n) const {
  std::vector<std::pair<std::string, uint64_t>> result;
  for (const auto& [hash, count] : admission_.hottest(n)) {
    if (const Copy* copy = copies_.find_hash(hash)) result.emplace_back(copy->key, count);
  }
  return result;
}

}  // namespace ballast::cache
