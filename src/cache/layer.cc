// SPDX-License-Identifier: Apache-2.0
#include "cache/layer.h"

#include "balance/hash.h"
#include "cache/router.h"

namespace ballast::cache {
namespace {

balance::Mechanism mechanism_of(model::Mechanism mechanism) {
  switch (mechanism) {
    case model::Mechanism::kDistCache:
      return balance::Mechanism::kDistCache;
    case model::Mechanism::kPartition:
      return balance::Mechanism::kPartition;
    case model::Mechanism::kReplication:
      return balance::Mechanism::kReplication;
    case model::Mechanism::kNoCache:
      return balance::Mechanism::kNoCache;
  }
  return balance::Mechanism::kNoCache;
}

// A node's way to the homes in the same process.
class LocalOutput final : public NodeOutput {
 public:
  LocalOutput(std::vector<std::unique_ptr<Shard>>& shards, Incarnation incarnation)
      : shards_(shards), incarnation_(incarnation) {}
  void send(uint32_t shard, ToHome message) override {
    shards_[shard]->home().on_message(incarnation_, std::move(message), now_ns());
  }

 private:
  std::vector<std::unique_ptr<Shard>>& shards_;
  Incarnation incarnation_;
};

}  // namespace

Layer::Layer(const model::TierConfig& config, RequestPool& pool)
    : config_(config),
      pool_(pool),
      mechanism_(mechanism_of(config.mechanism)),
      sample_(config.sample),
      loads_(config.racks.size() + config.spines.size()),
      random_(system_seed()) {
  const size_t racks = config.racks.size();
  std::vector<size_t> shards_per_rack;
  for (const model::Rack& rack : config.racks) shards_per_rack.push_back(rack.shards.size());
  const balance::SlotMap slots(shards_per_rack);
  std::vector<uint16_t> homes(balance::kSlots);
  for (size_t slot = 0; slot < balance::kSlots; ++slot) homes[slot] = slots.rack(slot);
  placement_.set_homes(std::move(homes));
  std::vector<balance::Member> spines;
  for (size_t i = 0; i < config.spines.size(); ++i)
    spines.push_back(
        {static_cast<uint16_t>(racks + i), true, balance::key_hash(config.spines[i].name)});
  placement_.set_members(1, std::move(spines));
  candidates_.resize(placement_.max_candidates(mechanism_));
}

Layer::~Layer() = default;

void Layer::add_local_nodes(std::vector<std::unique_ptr<Shard>>& shards, uint64_t seed) {
  if (!caching()) return;
  Random random(seed);
  const size_t racks = config_.racks.size();
  for (size_t i = 0; i < racks + config_.spines.size(); ++i) {
    auto member = std::make_unique<Member>();
    member->spine = i >= racks;
    member->name = member->spine ? config_.spines[i - racks].name : "leaf " + config_.racks[i].name;
    if (!member->spine) member->rack = config_.racks[i].name;
    member->bucket = balance::TokenBucket(config_.node_rate, config_.node_rate / 100);
    const NodeConfig node{.incarnation = random.next(),
                          .shards = static_cast<uint32_t>(shards.size()),
                          .memory = config_.cache_memory,
                          .objects = config_.cache_objects,
                          .max_reply = config_.max_object,
                          .lease = config_.lease_ms * kMillisecond,
                          .heartbeat = config_.heartbeat_ms * kMillisecond,
                          .window = config_.window_ms * kMillisecond,
                          .seed = random.next()};
    member->output = std::make_unique<LocalOutput>(shards, node.incarnation);
    member->node = std::make_unique<Node>(node, *member->output);
    members_.push_back(std::move(member));
  }
  const Nanos now = now_ns();
  for (const auto& member : members_)
    for (uint32_t shard = 0; shard < shards.size(); ++shard)
      member->node->on_home(shard, true, now);
}

Layer::Found Layer::find(uint32_t shard, size_t slot, std::string_view key, uint64_t hash,
                         std::string_view command, Nanos now) {
  const size_t count = placement_.candidates(mechanism_, hash, slot, candidates_.data());
  if (count == 0) return {};
  bool known = false;
  for (size_t i = 0; i < count && !known; ++i)
    known = members_[candidates_[i]]->node->holds(key, hash, command, now);
  // Of the reads of keys not known to be cached, one in `sample` goes through the layer: an
  // unbiased sample of all.
  const uint32_t weight = known ? 1 : sample_;
  if (!known && random_.below(sample_) != 0) return {};
  const size_t pick = loads_.choose(std::span(candidates_.data(), count), now, random_);
  for (size_t i = 0; i < count; ++i) {
    const uint16_t id = candidates_[(pick + i) % count];
    Member& member = *members_[id];
    if (config_.node_rate > 0 && (!member.waiting.empty() || !member.bucket.try_take(now))) {
      loads_.sent(id);
      return {.reply = nullptr, .queued = true, .node = id};
    }
    loads_.sent(id);
    const Node::Reply* reply = member.node->lookup(shard, key, hash, command, weight, now);
    if (reply != nullptr) {
      ++hits_;
      return {.reply = reply, .queued = false, .node = id};
    }
    if (!known) break;
  }
  return {};
}

void Layer::queue(uint16_t node, Request& request) {
  pool_.hold(&request);
  request.node = node;
  members_[node]->waiting.push_back(&request);
}

const Node::Reply* Layer::find_at(uint16_t node, uint32_t shard, std::string_view key,
                                  uint64_t hash, std::string_view command, Nanos now) {
  const Node::Reply* reply = members_[node]->node->lookup(shard, key, hash, command, 1, now);
  if (reply != nullptr) ++hits_;
  return reply;
}

void Layer::tick(Nanos now) {
  for (size_t id = 0; id < members_.size(); ++id) {
    Member& member = *members_[id];
    while (!member.waiting.empty() && member.bucket.try_take(now)) {
      Request* request = member.waiting.front();
      member.waiting.pop_front();
      router_->serve_read(*request, now);
      pool_.release(request);
    }
    member.node->tick(now);
    // What waits is load too: a saturated node's handled requests no longer tell how busy it is.
    if (now >= next_report_)
      loads_.report(static_cast<uint16_t>(id),
                    member.node->load(now) + static_cast<uint32_t>(member.waiting.size()), now);
  }
  if (now >= next_report_) next_report_ = now + 5 * kMillisecond;
}

void Layer::send_to_node(uint32_t shard, Incarnation node, ToNode message) {
  for (const auto& member : members_) {
    if (member->node->incarnation() != node) continue;
    member->node->on_message(shard, std::move(message), now_ns());
    return;
  }
}

}  // namespace ballast::cache
