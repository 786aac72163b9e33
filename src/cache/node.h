// SPDX-License-Identifier: Apache-2.0
// A cache node, leaf or spine: copies of hot objects' replies, each good only under a lease from
// its shard's home; counts its partition's traffic and decides what to hold. Pure: time is an
// argument, messages leave through NodeOutput.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "cache/messages.h"

namespace ballast::cache {

class NodeOutput {
 public:
  virtual ~NodeOutput() = default;
  virtual void send(uint32_t shard,
                    ToHome message) = 0;  // may call Node::on_message at once (same process)
};

struct NodeConfig {
  Incarnation incarnation = 0;
  uint32_t shards = 0;  // shard numbers are below this
  size_t memory = 64 << 20;
  size_t objects = 0;  // 0: bounded by memory only
  size_t max_reply = 64 * 1024;
  size_t max_commands = 16;  // cached commands of one key
  Nanos lease = kSecond;
  Nanos heartbeat = 300 * kMillisecond;
  Nanos window = kSecond;  // of the load telemetry
  uint64_t seed = 0;
};

struct NodeStats {
  uint64_t hits = 0, misses = 0, admissions = 0, fills = 0, fills_dropped = 0, invalidations = 0,
           evictions = 0, lapses = 0;
  size_t copies = 0, bytes = 0;
};

class Node {
 public:
  Node(NodeConfig config, NodeOutput& output);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  struct Reply {
    std::string_view resp3;  // good until the next call that changes the node
    std::string_view resp2;
  };
  struct Read {
    uint32_t shard;
    std::string_view key;
    uint64_t hash;             // key_hash(key)
    std::string_view command;  // "" for GET
  };
  // The cached reply, or null. Counts one request of this node's load and `weight` of the key's
  // popularity, and may ask the home for a copy. `now` was read after the request's bytes were read
  // from the socket.
  const Reply* lookup(const Read& read, uint32_t weight, Nanos now);
  enum class Holding : uint8_t {
    kNothing,
    kPlaceholder,  // a copy that has no good value now: being filled, or its lease has run out
    kReply,
  };
  // What it has for this command; counts nothing.
  Holding holding(std::string_view key, uint64_t hash, std::string_view command, Nanos now) const;

  void on_message(uint32_t shard, ToNode message, Nanos now);
  // Tells the node that shard's home can be spoken to (again) or not; renewals start or stop.
  // Copies stay until the lease ends.
  void on_home(uint32_t shard, bool reachable, Nanos now);
  void tick(Nanos now);  // renewals, decay, lapses; every few milliseconds to tens of them

  uint32_t load(Nanos now) const;  // requests in the last window
  bool lease_runs(uint32_t shard, Nanos now) const;
  Incarnation incarnation() const;
  NodeStats stats() const;
  const Histogram& turned_hot() const;  // from asking for a copy to its first hit
  std::vector<std::pair<std::string, uint64_t>> hottest(
      size_t n) const;  // held keys and their counts

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::cache
