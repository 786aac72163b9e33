// SPDX-License-Identifier: Apache-2.0
// The node's state. node.cc has the requests, messages and time, node_copies.cc the table of
// copies: room, admission and eviction.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <limits>

#include "balance/admission.h"
#include "balance/choice.h"
#include "cache/key_table.h"
#include "cache/node.h"

namespace ballast::cache {

// The reply to one command on the object. `reply` points into `bytes`, or is empty.
struct CachedReply {
  CachedCommand command;
  std::unique_ptr<char[]> bytes;
  size_t size = 0;
  Node::Reply reply;
  bool filled = false;
  uint64_t version = 0;
  Nanos expires = 0;
  Nanos ask_after = 0;  // not filled: the home is not asked again before
};

struct Copy {
  std::string key;
  uint64_t hash = 0;
  uint32_t shard = 0;
  uint64_t copy_id = 0;
  uint64_t version = 0;  // the highest seen for this copy
  uint64_t fill_version = 0;
  std::vector<CachedReply> replies;  // those not filled are placeholders
  Nanos asked_at = 0;                // until its first hit
  uint32_t reads = 0;                // since the last fill
  uint32_t unread_fills = 0;         // in a row
  size_t bytes = 0;
  size_t index = 0;  // in Impl::all_
};

// A node's side of one shard.
struct ShardState {
  static constexpr size_t kRemembered = 64;  // renewals whose time of sending is known
  uint64_t epoch = 0;
  Nanos lease_until = std::numeric_limits<Nanos>::min();
  uint64_t drop_version = 0;
  uint64_t seq = 0;
  std::array<Nanos, kRemembered> sent{};  // by seq
  Nanos renew_at = 0;
  bool reachable = false;
  size_t copies = 0;
};

class Node::Impl {
 public:
  Impl(NodeConfig config, NodeOutput& output);

  const Reply* lookup(const Read& read, uint32_t weight, Nanos now);
  Holding holding(std::string_view key, uint64_t hash, std::string_view command, Nanos now) const;
  void on_message(uint32_t shard, ToNode message, Nanos now);
  void on_home(uint32_t shard, bool reachable, Nanos now);
  void tick(Nanos now);
  uint32_t load(Nanos now) { return load_.load(now); }
  bool lease_runs(uint32_t shard, Nanos now) const { return now < shards_[shard].lease_until; }
  Incarnation incarnation() const { return config_.incarnation; }
  NodeStats stats() const;
  const Histogram& turned_hot() const { return turned_hot_; }
  std::vector<std::pair<std::string, uint64_t>> hottest(size_t n) const;

 private:
  struct BackOff {
    Nanos until = 0;
    uint32_t refusals = 0;
  };
  struct Outgoing {
    uint32_t shard;
    ToHome message;
  };

  // Requests and messages (node.cc).
  void flush_outbox();
  void send(uint32_t shard, ToHome message) { outbox_.push_back({shard, std::move(message)}); }
  const Reply* miss(Copy* copy, std::string_view command, Nanos now);
  void on_fill(uint32_t shard, Fill& fill, Nanos now);
  void set_uncacheable(Copy* copy, CachedReply& slot, Nanos now);
  void on_refuse(uint32_t shard, const Refuse& refuse, Nanos now);
  void on_invalidate(uint32_t shard, const Invalidate& invalidate);
  void on_lease(uint32_t shard, const Lease& lease, Nanos now);
  void on_drop_all(uint32_t shard, const DropAll& drop);
  void renew(uint32_t shard, Nanos now);
  Nanos expiry(const ShardState& shard, const Fill& fill) const;

  // The table of copies (node_copies.cc).
  void consider(uint32_t shard, HashedKey key, std::string_view command, uint32_t weight,
                Nanos now);
  void admit(uint32_t shard, HashedKey key, std::string_view command, Nanos now);
  void make_room();
  void forget(Copy* copy);
  void release(Copy* copy);
  void drop_shard(uint32_t shard);
  bool put(Copy& copy, CachedReply& slot, const Fill& fill, Nanos expires);
  void clear(Copy& copy, CachedReply& slot);
  bool worth_refilling(Copy& copy, uint64_t version);
  void back_off(uint64_t hash, Nanos now);
  bool backing_off(uint64_t hash, Nanos now) const;

  NodeConfig config_;
  NodeOutput& output_;
  Nanos ask_again_;  // a placeholder's wait for its fill before the home is asked again
  KeyTable<Copy> copies_;
  std::vector<Copy*> all_;
  std::vector<ShardState> shards_;
  balance::LoadWindow load_;
  balance::Admission admission_;  // holds the hash of each copy's key, no others
  boost::unordered_flat_map<uint64_t, BackOff> back_offs_;  // by key hash
  size_t bytes_ = 0;
  uint64_t next_copy_id_ = 0;
  Nanos clean_at_ = 0;  // of back_offs_
  std::vector<Outgoing> outbox_;
  bool sending_ = false;
  NodeStats stats_;
  Histogram turned_hot_;
};

}  // namespace ballast::cache
