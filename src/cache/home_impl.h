// SPDX-License-Identifier: Apache-2.0
// The home's state. home.cc has the writes and the way out, home_fills.cc admissions and fills,
// home_leases.cc leases, drops and time.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <limits>
#include <map>
#include <variant>

#include "cache/home.h"
#include "cache/key_table.h"

namespace ballast::cache {

inline constexpr Nanos kNever = std::numeric_limits<Nanos>::min();

// One copy of an object at one node. `filled`, `asked` and `acked` are versions, 0 for none: of the
// last fill sent, of the last invalidation sent, of the last one answered.
struct Holder {
  Incarnation node = 0;
  uint64_t generation = 0;  // of the node's lease; an older one than the node's is void
  uint64_t copy_id = 0;
  uint64_t filled = 0;
  uint64_t asked = 0;
  uint64_t acked = 0;
  uint64_t ttl_seq = 0;   // the node's last renewal when the read of the fill began
  uint32_t commands = 0;  // bits: indices into Entry::commands
  uint32_t wanted = 0;    // of them, to be filled
  uint32_t reading = 0;   // of them, asked for by the outstanding read

  bool value_out() const { return filled != 0 && filled >= acked; }
};

struct Entry {
  std::string key;
  uint64_t hash = 0;
  uint64_t version = 0;  // of the last change
  std::vector<Holder> holders;
  std::vector<CachedCommand> commands;
  std::vector<uint64_t> waiting;  // writes by arrival, oldest first
  uint64_t read_id = 0;           // outstanding, 0 for none
  uint64_t read_version = 0;      // `version` for which its reply is good
  uint32_t read_mask = 0;
  uint32_t discards = 0;  // reads in a row that a change made useless
  bool read_begun = false;
  bool pending = false;  // in Impl::pending_
  bool unused = false;   // in Impl::unused_
  Nanos pending_since = 0;
  size_t index = 0;  // in Impl::all_
};

struct NodeState {
  struct Unanswered {
    uint64_t version = 0;
    Nanos first = 0;
    Nanos last = 0;
  };
  Nanos lease_until = kNever;  // by this clock, margin included
  uint64_t generation = 0;
  uint64_t last_seq = 0;    // of renewals heard
  uint64_t wanted_seq = 0;  // renewal that waits for a round trip to begin, 0 for none
  uint64_t pinged_seq = 0;  // renewal that the outstanding round trip answers
  uint64_t drop_asked = 0;
  uint64_t drop_acked = 0;
  Nanos drop_first = 0;
  Nanos drop_last = 0;
  Nanos heard = 0;
  bool connected = true;
  bool live = false;  // its lease ran when last looked at
  boost::unordered_flat_map<std::string, Unanswered> unanswered;
};

struct WaitingWrite {
  uint64_t token = 0;
  bool all = false;  // of every key of the shard
  bool released = false;
  std::vector<Entry*> entries;    // distinct
  std::vector<uint64_t> buckets;  // one per key given
};

class Home::Impl {
 public:
  Impl(HomeConfig config, HomeOutput& output);

  bool write_begin(std::span<const std::string_view> keys, std::span<const uint64_t> hashes,
                   uint64_t token, Nanos now);
  void write_end(std::span<const std::string_view> keys, std::span<const uint64_t> hashes,
                 Nanos now);
  bool write_cancel(uint64_t token);
  bool flush_begin(uint64_t token, Nanos now);
  void flush_end(Nanos now);
  bool write_waits(std::string_view key, uint64_t hash) const;

  void on_fenced(bool unknown_history, Nanos now);
  void on_lost(Nanos now);
  bool ready() const { return open_; }
  void on_message(Incarnation node, ToHome message, Nanos now);
  void on_node_gone(Incarnation node);
  void on_read_begun(uint64_t read_id);
  void on_read(uint64_t read_id, int64_t ttl_ms, std::span<const std::string_view> replies,
               Nanos now);
  void on_pong(uint64_t ping_id, Nanos now);
  void on_push(std::string_view key, uint64_t hash, Nanos now);
  void on_push_all(Nanos now);
  void tick(Nanos now);
  HomeStats stats() const;

 private:
  static constexpr size_t kBuckets = 1 << 14;
  static constexpr size_t kMaxCommands = 32;  // of one key, over all nodes; bits of a mask
  static constexpr uint32_t kMaxDiscards = 4;

  // Something to be asked of the surroundings.
  struct Effect {
    enum class Kind { kSend, kRead, kPing, kReady };
    Kind kind;
    uint64_t id = 0;  // of the node, the read, the ping, or the token
    ToNode message = {};
    std::string key = {};
    std::vector<CachedCommand> commands = {};
  };

  static uint64_t bucket(uint64_t hash) { return hash % kBuckets; }

  // The way out (home.cc).
  void drain();
  void deliver(Effect& effect);
  template <typename Body>
  void send(Incarnation node, Body body) {
    effects_.push_back({Effect::Kind::kSend, node, ToNode{config_.epoch, std::move(body)}});
  }

  // Directory and writes (home.cc).
  Entry* entry_for(HashedKey key);
  void forget_if_unused(Entry* entry);
  void collect();
  bool change(Entry* entry, Nanos now);
  void queue_write(std::span<const std::string_view> keys, std::span<const uint64_t> hashes,
                   uint64_t token);
  bool begin_waiting(uint64_t token);
  bool can_release(uint64_t arrival, const WaitingWrite& write, Nanos now);
  bool may_hold(const Holder& holder, Nanos now) const;
  void release(WaitingWrite& write);
  void finish_release(uint64_t arrival);
  void forget_write(std::map<uint64_t, WaitingWrite>::iterator write);
  void settle(Entry* entry, Nanos now);
  void settle_all(Nanos now);

  // Admissions and fills (home_fills.cc).
  void on_admit(Incarnation node, Admit message, Nanos now);
  void on_ack(Incarnation node, const Ack& message, Nanos now);
  void on_release(Incarnation node, const Release& message, Nanos now);
  Holder* holder_for(Entry* entry, Incarnation node, uint64_t copy_id);
  int command_bit(Entry* entry, const CachedCommand& command);
  void purge_void(Entry* entry);
  void want_fill(Entry* entry, Nanos now);
  void begin_read(Entry* entry, Nanos now);
  void void_read(Entry* entry);
  int64_t less_drift(int64_t ttl_ms) const;
  void fill(Entry* entry, int64_t ttl_ms, std::span<const std::string_view> replies, Nanos now);
  void refuse_unfilled(Entry* entry);
  void invalidate(Entry* entry, Holder& holder, Nanos now);

  // Leases and drops (home_leases.cc).
  NodeState& node_for(Incarnation node, Nanos now);
  const NodeState* find_node(Incarnation node) const;
  bool blocked(const NodeState& state, Nanos now) const;
  void begin_ping(Nanos now);
  void grant(Incarnation node, NodeState& state, Nanos now);
  void drop_all(Nanos now);
  void clear_directory();
  void update_open(Nanos now);
  void repeat(Incarnation node, NodeState& state, Nanos now);
  void retry_pending(Nanos now);
  void sweep();

  HomeConfig config_;
  HomeOutput& output_;

  uint64_t version_ = 1;  // 0 stands for none
  uint64_t arrivals_ = 0;
  uint64_t next_read_ = 0;
  uint64_t next_ping_ = 0;
  uint64_t next_generation_ = 0;

  // Writes that have begun and not ended, by key hash: a fill's read waits for its counter.
  std::vector<uint32_t> in_flight_ = std::vector<uint32_t>(kBuckets);
  uint32_t flushes_in_flight_ = 0;

  KeyTable<Entry> entries_;
  std::vector<Entry*> all_;
  std::vector<Entry*> pending_;  // fills that could not be read at once
  std::vector<Entry*> unused_;   // to be forgotten when no call is under way
  size_t sweep_at_ = 0;
  boost::unordered_flat_map<uint64_t, Entry*> reads_;

  std::map<uint64_t, WaitingWrite> waiting_;                  // by arrival
  std::map<uint64_t, uint64_t> flushes_waiting_;              // arrival to token
  boost::unordered_flat_map<uint64_t, uint64_t> arrival_of_;  // by token

  boost::unordered_flat_map<Incarnation, std::unique_ptr<NodeState>> nodes_;
  uint64_t ping_id_ = 0;  // outstanding, 0 for none
  bool fenced_ = false;
  bool open_ = false;  // fenced, and no lease of the past can run
  bool drops_pending_ = false;
  Nanos history_until_ = kNever;

  std::deque<Effect> effects_;
  bool draining_ = false;
  uint64_t beginning_ = 0;  // arrival of the write whose write_begin is under way, 0 for none
  bool reports_begun_ = false;
  Nanos now_ = 0;  // of the last call
  HomeStats stats_;
};

}  // namespace ballast::cache
