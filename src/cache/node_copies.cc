// SPDX-License-Identifier: Apache-2.0
// The table of copies: which keys deserve one, what is evicted for them, and what a copy costs.
#include <algorithm>
#include <cstring>

#include "balance/hash.h"
#include "cache/node_impl.h"

namespace ballast::cache {

namespace {

constexpr uint32_t kUnreadFills = 2;  // in a row, then the copy is not worth its refills
constexpr size_t kSample = 8;         // copies looked at to find a cold one
constexpr size_t kMaxBackOffs = 1 << 14;

// The RESP2 form of a reply: scalar strings, numbers and nil are what hot reads return.
// Aggregates of RESP3 alone need proto's conversion.
std::string to_resp2(std::string_view resp3) {
  if (resp3 == "_\r\n") return "$-1\r\n";
  return std::string(resp3);
}

}  // namespace

uint32_t Sketch::add(uint64_t hash, uint32_t weight) {
  uint32_t least = std::numeric_limits<uint32_t>::max();
  for (size_t row = 0; row < kRows; ++row) {
    uint32_t& cell = rows_[row][balance::mix(hash, row) % kColumns];
    cell += weight;
    least = std::min(least, cell);
  }
  return least;
}

void Sketch::halve() {
  for (auto& row : rows_) {
    for (uint32_t& cell : row) cell /= 2;
  }
}

// Halved once for each period since it was last touched.
uint32_t Node::Impl::heat(const Copy& copy) const {
  const uint32_t age = period_ - copy.period;
  return age < 32 ? copy.count >> age : 0;
}

void Node::Impl::touch(Copy& copy, uint32_t weight) {
  if (copy.period != period_) {
    copy.count = heat(copy);
    copy.period = period_;
  }
  copy.count += weight;
  ++copy.reads;
}

// A key that is not held was read.
void Node::Impl::consider(uint32_t shard, HashedKey key, std::string_view command, uint32_t weight,
                          Nanos now) {
  const uint32_t count = sketch_.add(key.hash, weight);
  // One sampled read says too little, whatever its weight.
  if (count < 2 * weight || !lease_runs(shard, now) || backing_off(key.hash, now)) return;
  if (full()) {
    Copy* victim = coldest();
    if (victim == nullptr || count / 2 <= heat(*victim)) return;  // clearly hotter, or it stays
    ++stats_.evictions;
    release(victim);
    if (full()) return;
  }
  admit(shard, key, command, count, now);
}

void Node::Impl::admit(uint32_t shard, HashedKey key, std::string_view command, uint32_t count,
                       Nanos now) {
  auto fresh = std::make_unique<Copy>();
  fresh->key = key.key;
  fresh->hash = key.hash;
  fresh->shard = shard;
  fresh->copy_id = ++next_copy_id_;
  fresh->count = count;
  fresh->period = period_;
  fresh->index = all_.size();
  CachedReply& slot = fresh->replies.emplace_back();
  slot.command = command;
  slot.ask_after = now + ask_again_;
  // Two table slots, the object, the key, one reply.
  fresh->bytes = sizeof(Copy) + sizeof(CachedReply) + key.key.size() + command.size() + 48;
  bytes_ += fresh->bytes;
  ++shards_[shard].copies;
  ++stats_.admissions;
  Copy* copy = copies_.insert(std::move(fresh));
  all_.push_back(copy);
  send(shard, Admit{copy->key, slot.command, copy->copy_id});
}

bool Node::Impl::full() const {
  return (config_.objects != 0 && copies_.size() >= config_.objects) || bytes_ >= config_.memory;
}

Copy* Node::Impl::coldest() {
  Copy* coldest = nullptr;
  for (size_t i = 0; i < kSample && !all_.empty(); ++i) {
    Copy* copy = all_.size() <= kSample ? all_[i % all_.size()] : all_[random_.below(all_.size())];
    if (coldest == nullptr || heat(*copy) < heat(*coldest)) coldest = copy;
  }
  return coldest;
}

void Node::Impl::make_room() {
  while (bytes_ > config_.memory && !all_.empty()) {
    ++stats_.evictions;
    release(coldest());
  }
}

void Node::Impl::forget(Copy* copy) {
  bytes_ -= copy->bytes;
  --shards_[copy->shard].copies;
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

void Node::Impl::put(Copy& copy, CachedReply& slot, const Fill& fill, Nanos expires) {
  clear(copy, slot);
  const std::string resp2 = to_resp2(fill.reply);
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
  for (const Copy* copy : all_) result.emplace_back(copy->key, heat(*copy));
  n = std::min(n, result.size());
  std::partial_sort(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(n), result.end(),
                    [](const auto& a, const auto& b) { return a.second > b.second; });
  result.resize(n);
  return result;
}

}  // namespace ballast::cache
