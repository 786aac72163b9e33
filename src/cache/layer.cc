// SPDX-License-Identifier: Apache-2.0
#include "cache/layer.h"

#include <algorithm>

#include "balance/hash.h"
#include "cache/router.h"
#include "proto/resp_convert.h"
#include "proto/resp_reply.h"

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

// A node's way to the homes of the shards: a call in the same process, a message to another.
class NodeOutlet final : public NodeOutput {
 public:
  NodeOutlet(std::vector<std::unique_ptr<Shard>>& shards, Incarnation incarnation)
      : shards_(shards), incarnation_(incarnation) {}
  void send(uint32_t shard, ToHome message) override {
    Shard& target = *shards_[shard];
    if (target.options().home) {
      target.home().on_message(incarnation_, std::move(message), now_ns());
    } else {
      target.options().leaf->send({incarnation_, shard, std::move(message)});
    }
  }

 private:
  std::vector<std::unique_ptr<Shard>>& shards_;
  Incarnation incarnation_;
};

constexpr size_t kMaxKnown = 65536;  // of one node
constexpr uint32_t kHotSample = 8;
constexpr Nanos kSilence = kSecond;  // how long a node that did not answer is left alone

}  // namespace

Layer::Layer(const model::TierConfig& config, model::Role role, io::Loop& loop, RequestPool& pool,
             telemetry::Durations& durations)
    : config_(config),
      role_(role),
      loop_(loop),
      pool_(pool),
      durations_(durations),
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
  for (size_t i = 0; i < racks + config.spines.size(); ++i) {
    auto member = std::make_unique<Member>();
    member->spine = i >= racks;
    member->name = member->spine ? config.spines[i - racks].name : "leaf " + config.racks[i].name;
    if (!member->spine) member->rack = config.racks[i].name;
    members_.push_back(std::move(member));
  }
}

Layer::~Layer() = default;

Result<> Layer::add_peers() {
  const size_t racks = config_.racks.size();
  for (size_t i = 0; i < members_.size() && role_ != model::Role::kAll; ++i) {
    const bool spine = i >= racks;
    const std::string& name = spine ? config_.spines[i - racks].name : config_.racks[i].name;
    if (role_ == (spine ? model::Role::kSpine : model::Role::kLeaf) && name == config_.role_name)
      continue;
    const model::Endpoint& endpoint =
        spine ? config_.spines[i - racks].address : config_.racks[i].leaf;
    auto address = io::resolve(endpoint.host, endpoint.port);
    if (!address) return Unexpected(address.error());
    PeerOptions options{.name = members_[i]->name,
                        .address = *address,
                        .password = config_.password,
                        .member = static_cast<uint16_t>(i),
                        .connect_timeout = config_.connect_timeout_ms * kMillisecond};
    // A write may wait for a lease to run out, then for the shard.
    options.write_timeout = (2 * config_.lease_ms + 2 * config_.shard_timeout_ms) * kMillisecond;
    members_[i]->peer = std::make_unique<Peer>(loop_, pool_, *this, std::move(options));
  }
  return {};
}

void Layer::add_local_nodes(std::vector<std::unique_ptr<Shard>>& shards, uint64_t seed) {
  shards_ = &shards;
  if (!caching()) return;
  Random random(seed);
  for (const auto& member : members_) {
    if (member->peer != nullptr || role_ == model::Role::kRouter) continue;
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
    member->output = std::make_unique<NodeOutlet>(shards, node.incarnation);
    member->node = std::make_unique<Node>(node, *member->output);
  }
  const Nanos now = now_ns();
  for (const auto& member : members_)
    for (uint32_t shard = 0; shard < shards.size() && member->node; ++shard)
      if (shards[shard]->options().home) member->node->on_home(shard, true, now);
}

void Layer::open() {
  for (const auto& member : members_)
    if (member->peer) member->peer->open();
}

void Layer::shut_down() {
  for (const auto& member : members_)
    if (member->peer) member->peer->shut_down();
}

Node::Holding Layer::holding(const Member& member, const Node::Read& read, Nanos now) const {
  if (member.node) return member.node->holding(read.key, read.hash, read.command, now);
  const auto known = member.known.find(read.hash);
  if (known == member.known.end() || !member.peer->up()) return Node::Holding::kNothing;
  return known->second ? Node::Holding::kReply : Node::Holding::kPlaceholder;
}

Layer::Found Layer::find(const Node::Read& read, size_t slot, Nanos now) {
  size_t count = placement_.candidates(mechanism_, read.hash, slot, candidates_.data());
  bool known = false;
  bool hot = false;
  size_t usable = 0;
  for (size_t i = 0; i < count; ++i) {
    const Member& member = *members_[candidates_[i]];
    if (off(candidates_[i], now)) continue;
    candidates_[usable++] = candidates_[i];
    if (known) continue;
    const Node::Holding held = holding(member, read, now);
    known = held == Node::Holding::kReply;
    hot = hot || held == Node::Holding::kPlaceholder;
  }
  const uint16_t leaf = placement_.home(slot);
  if (!known && usable > 0 && config_.cold_reads == model::ColdReads::kViaLeaf && !off(leaf, now)) {
    return ask(leaf, read, 1, now);
  }
  // Of the reads of keys not known to be cached, one in `sample` goes through the layer: an
  // unbiased sample of all.
  // More of those of keys that had a copy: it is seen soon when it is good again.
  const uint32_t weight = known ? 1 : hot ? std::min(sample_, kHotSample) : sample_;
  if (usable == 0 || (!known && random_.below(weight) != 0)) return {.hot = hot};
  if (!known) ++router_->metrics().sampled_reads;
  count = usable;
  const size_t pick = loads_.choose(std::span(candidates_.data(), count), now, random_);
  for (size_t i = 0; i < count; ++i) {
    const uint16_t id = candidates_[(pick + i) % count];
    Found found = ask(id, read, weight, now);
    found.hot = hot || known;
    if (found.where != Found::Where::kShard || !known) return found;
    ++router_->metrics().missed_reads;
  }
  return {.hot = true};
}

bool Layer::off(uint16_t node, Nanos now) const {
  const Member& member = *members_[node];
  return member.peer && (!member.peer->up() || now < member.silent_until);
}

Layer::Found Layer::ask(uint16_t node, const Node::Read& read, uint32_t weight, Nanos now) {
  Member& member = *members_[node];
  loads_.sent(node);
  if (member.peer) return {Found::Where::kRemote, node, weight};
  if (!admits(node, now)) return {Found::Where::kQueued, node, weight};
  const Node::Reply* reply = member.node->lookup(read, weight, now);
  return {reply != nullptr ? Found::Where::kHere : Found::Where::kShard, node, weight, reply};
}

bool Layer::admits(uint16_t node, Nanos now) {
  if (config_.node_rate <= 0) return true;
  Member& member = *members_[node];
  return member.waiting.empty() && member.bucket.try_take(now);
}

void Layer::queue(uint16_t node, Request& request) {
  pool_.hold(&request);
  request.node = node;
  members_[node]->waiting.push_back(&request);
  ++members_[node]->limited;
}

const Node::Reply* Layer::find_at(uint16_t node, const Node::Read& read, uint32_t weight,
                                  Nanos now) {
  return members_[node]->node->lookup(read, weight, now);
}

uint32_t Layer::load(uint16_t node, Nanos now) const {
  const Member& member = *members_[node];
  // What waits is load too: a saturated node's handled requests no longer tell how busy it is.
  return member.node->load(now) + static_cast<uint32_t>(member.waiting.size());
}

void Layer::read_remote(const Found& found, uint32_t shard, Request& request) {
  pool_.hold(&request);
  members_[found.node]->peer->read(shard, request.keys[0], request.command, found.weight,
                                   [this, node = found.node, shard, &request](Request& answered) {
                                     on_remote_answer(node, shard, request, answered.reply);
                                     pool_.release(&request);
                                   });
}

void Layer::on_remote_answer(uint16_t node, uint32_t shard, Request& request,
                             std::string_view answer) {
  Member& member = *members_[node];
  const Nanos now = now_ns();
  constexpr std::string_view kLoad = "|1\r\n$4\r\nload\r\n:";
  const bool spoke = answer.starts_with(kLoad);
  if (spoke) {
    uint64_t load = 0;
    const size_t end = answer.find('\r', kLoad.size());
    parse_number(answer.substr(kLoad.size(), end - kLoad.size()), load);
    loads_.report(node, static_cast<uint32_t>(load), now);
    answer.remove_prefix(end + 2);
  } else {
    member.silent_until = now + kSilence;
  }
  const bool hit = spoke && !answer.starts_with('-');
  if (spoke) remember(member, request.hash, hit);
  if (request.client == nullptr) return;
  if (!hit) return router_->read_at_shard(shard, request, now);
  count_hot(request, now);
  if (request.proto == 3) return request.client->on_answer(request, answer, true);
  std::string resp2;
  if (!proto::downgrade(answer, resp2)) return router_->read_at_shard(shard, request, now);
  request.client->on_answer(request, resp2, true);
}

void Layer::count_hot(const Request& request, Nanos now) {
  ++router_->metrics().hot_reads;
  durations_.hot_read.record(now - request.started);
}

void Layer::remember(Member& member, uint64_t hash, bool held) {
  if (!held) {
    const auto known = member.known.find(hash);
    if (known == member.known.end()) return;
    router_->metrics().missed_reads += known->second;
    known->second = false;
    return;
  }
  // Forgetting any one is harmless: it is found again by the sample.
  if (member.known.size() >= kMaxKnown) member.known.erase(member.known.begin());
  member.known[hash] = true;
}

void Layer::tick(Nanos now) {
  for (size_t id = 0; id < members_.size(); ++id) {
    Member& member = *members_[id];
    if (member.peer) member.peer->tick(now);
    if (!member.node) continue;
    while (!member.waiting.empty() && member.bucket.try_take(now)) {
      Request* request = member.waiting.front();
      member.waiting.pop_front();
      router_->serve_read(*request, now);
      pool_.release(request);
    }
    member.node->tick(now);
    const uint16_t node = static_cast<uint16_t>(id);
    if (now >= next_report_) loads_.report(node, load(node, now), now);
  }
  if (now >= next_report_) next_report_ = now + 5 * kMillisecond;
}

void Layer::send_to_node(uint32_t shard, Incarnation node, ToNode message) {
  for (const auto& member : members_) {
    if (!member->node || member->node->incarnation() != node) continue;
    member->node->on_message(shard, std::move(message), now_ns());
    return;
  }
  const auto remote = remote_nodes_.find(node);
  if (remote == remote_nodes_.end()) return;
  std::string push;
  append_node_message(push, {shard, std::move(message)});
  router_->push_to(remote->second, push);
}

void Layer::on_client_gone(uint64_t client) {
  for (auto it = remote_nodes_.begin(); it != remote_nodes_.end();) {
    if (it->second != client) {
      ++it;
      continue;
    }
    for (const auto& shard : *shards_)
      if (shard->options().home) shard->home().on_node_gone(it->first);
    remote_nodes_.erase(it++);
  }
}

void Layer::on_peer(Peer& peer, bool up) {
  Member& talker = *members_[peer.options().member];
  talker.known.clear();
  talker.silent_until = 0;
  loads_.forget(peer.options().member);
  if (talker.spine || shards_ == nullptr) return;
  const Nanos now = now_ns();
  for (const auto& member : members_)
    for (uint32_t shard = 0; shard < shards_->size() && member->node; ++shard)
      if ((*shards_)[shard]->options().leaf == &peer) member->node->on_home(shard, up, now);
}

void Layer::on_node_message(NodeMessage message) {
  // Each process has one node at most; the homes speak to it alone.
  for (const auto& member : members_) {
    if (!member->node || message.shard >= shards_->size()) continue;
    member->node->on_message(message.shard, std::move(message.message), now_ns());
    return;
  }
}

}  // namespace ballast::cache
