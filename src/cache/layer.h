// SPDX-License-Identifier: Apache-2.0
// The cache nodes as a router sees them: which may hold a key, which of those is less loaded, and
// how to ask one.
#pragma once

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
#include "cache/request.h"
#include "cache/shard.h"
#include "model/tier.h"

namespace ballast::cache {

class Router;

class Layer final : public NodeSender {
 public:
  Layer(const model::TierConfig& config, RequestPool& pool);
  ~Layer() override;

  // The nodes of this process, each with a connection in memory to every shard's home.
  void add_local_nodes(std::vector<std::unique_ptr<Shard>>& shards, uint64_t seed);
  void set_router(Router* router) { router_ = router; }

  bool caching() const { return mechanism_ != balance::Mechanism::kNoCache; }

  // Looks for a copy by the rule: candidates by placement, the less loaded first. Null: ask the
  // shard.
  struct Found {
    const Node::Reply* reply = nullptr;
    bool queued = false;  // the node is over its rate: the caller queues by queue()
    uint16_t node = 0;
  };
  Found find(uint32_t shard, size_t slot, std::string_view key, uint64_t hash,
             std::string_view command, Nanos now);
  void queue(uint16_t node, Request& request);
  // After its turn came: no rate is asked any more.
  const Node::Reply* find_at(uint16_t node, uint32_t shard, std::string_view key, uint64_t hash,
                             std::string_view command, Nanos now);

  void tick(Nanos now);
  void send_to_node(uint32_t shard, Incarnation node, ToNode message) override;

  struct Member {
    std::string name;
    std::string rack;  // of a leaf
    bool spine = false;
    std::unique_ptr<Node> node;
    std::unique_ptr<NodeOutput> output;
    balance::TokenBucket bucket;
    Ring<Request*> waiting;
  };
  const std::vector<std::unique_ptr<Member>>& members() const { return members_; }
  uint64_t hits() const { return hits_; }

 private:
  const model::TierConfig& config_;
  RequestPool& pool_;
  Router* router_ = nullptr;
  balance::Mechanism mechanism_;
  uint32_t sample_;
  balance::Placement placement_;
  balance::LoadTable loads_;
  Random random_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<uint16_t> candidates_;
  uint64_t hits_ = 0;
  Nanos next_report_ = 0;
};

}  // namespace ballast::cache
