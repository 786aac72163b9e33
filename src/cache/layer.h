// SPDX-License-Identifier: Apache-2.0
// The cache nodes as a router sees them: which may hold a key, which of those is less loaded, and
// how to ask one, in this process or in another.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "balance/choice.h"
#include "balance/placement.h"
#include "balance/token_bucket.h"
#include "base/random.h"
#include "base/ring.h"
#include "cache/node.h"
#include "cache/peer.h"
#include "cache/request.h"
#include "cache/shard.h"
#include "model/tier.h"

namespace ballast::cache {

class Router;

class Layer final : public NodeSender, public PeerOwner {
 public:
  Layer(const model::TierConfig& config, model::Role role, io::Loop& loop, RequestPool& pool,
        telemetry::Durations& durations);
  ~Layer() override;

  // Connections to the tier's other processes; none in the one-process form.
  Result<> add_peers();
  // The nodes of this process, each with a way to every shard's home.
  void add_local_nodes(std::vector<std::unique_ptr<Shard>>& shards, uint64_t seed);
  void set_router(Router* router) { router_ = router; }
  void open();
  void shut_down();

  telemetry::Durations& durations() { return durations_; }
  bool caching() const { return mechanism_ != balance::Mechanism::kNoCache; }
  bool is_local(uint64_t member) const {
    return member < members_.size() && members_[member]->node != nullptr;
  }
  bool has_peers() const { return role_ != model::Role::kAll; }
  Peer* leaf_of(size_t rack) { return members_[rack]->peer.get(); }

  // Looks for a copy by the rule: candidates by placement, the less loaded first.
  struct Found {
    enum class Where : uint8_t {
      kShard,   // no good copy is known: ask the shard
      kHere,    // `reply`
      kQueued,  // the node is over its rate: wait for its turn by queue()
      kRemote,  // ask it by read_remote()
    };
    Where where = Where::kShard;
    uint16_t node = 0;
    uint32_t weight = 1;
    const Node::Reply* reply = nullptr;
    bool hot = false;  // kShard, though the key had a copy and may soon have it again
  };
  Found find(const Node::Read& read, size_t slot, Nanos now);
  // At a node of this process, whatever the choice would be.
  const Node::Reply* find_at(uint16_t node, const Node::Read& read, uint32_t weight, Nanos now);
  bool admits(uint16_t node, Nanos now);  // by its rate
  void queue(uint16_t node, Request& request);
  // The request holds its place in the client's queue, with wire, key and command; it goes on to
  // the shard if the node has no copy or does not answer.
  void read_remote(const Found& found, uint32_t shard, Request& request);
  uint32_t load(uint16_t node, Nanos now) const;
  // A read that waited for a node, here or elsewhere, was answered by its copy.
  void count_hot(const Request& request, Nanos now);

  // A node of another process spoke to a home of this one, over the connection of `client`.
  void know_remote(Incarnation node, uint64_t client) { remote_nodes_[node] = client; }
  void on_client_gone(uint64_t client);

  void tick(Nanos now);

  struct Member {
    std::string name;
    std::string rack;  // of a leaf
    bool spine = false;
    // In this process:
    std::unique_ptr<Node> node;
    std::unique_ptr<NodeOutput> output;
    balance::TokenBucket bucket;
    Ring<Request*> waiting;
    uint64_t limited = 0;  // reads that have waited
    // In another:
    std::unique_ptr<Peer> peer;
    // Hashes of keys it said it holds, and whether it still did when last asked: a hint.
    boost::unordered_flat_map<uint64_t, bool> known;
    Nanos silent_until = 0;  // did not answer in time: not asked before
  };
  const std::vector<std::unique_ptr<Member>>& members() const { return members_; }

  void send_to_node(uint32_t shard, Incarnation node, ToNode message) override;
  void on_peer(Peer& peer, bool up) override;
  void on_node_message(NodeMessage message) override;

 private:
  bool off(uint16_t node, Nanos now) const;  // another process's, and not to be asked now
  Found ask(uint16_t node, const Node::Read& read, uint32_t weight, Nanos now);
  Node::Holding holding(const Member& member, const Node::Read& read, Nanos now) const;
  void on_remote_answer(uint16_t node, uint32_t shard, Request& request, std::string_view answer);
  void remember(Member& member, uint64_t hash, bool held);

  const model::TierConfig& config_;
  model::Role role_;
  io::Loop& loop_;
  RequestPool& pool_;
  telemetry::Durations& durations_;
  Router* router_ = nullptr;
  std::vector<std::unique_ptr<Shard>>* shards_ = nullptr;
  balance::Mechanism mechanism_;
  uint32_t sample_;
  balance::Placement placement_;
  balance::LoadTable loads_;
  Random random_;
  std::vector<std::unique_ptr<Member>> members_;  // leaves by rack, then spines
  std::vector<uint16_t> candidates_;
  boost::unordered_flat_map<Incarnation, uint64_t>
      remote_nodes_;  // to the client that speaks for it
  Nanos next_report_ = 0;
};

}  // namespace ballast::cache
