// SPDX-License-Identifier: Apache-2.0
#include "sim/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "balance/hash.h"
#include "balance/zipf.h"
#include "base/check.h"
#include "base/random.h"
#include "proto/slot.h"

namespace ballast::sim {
namespace {

constexpr size_t kLeastHead = size_t{1} << 16;

balance::Mechanism mechanism_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::kNoCache:
      return balance::Mechanism::kNoCache;
    case Scheme::kPartition:
      return balance::Mechanism::kPartition;
    case Scheme::kReplication:
      return balance::Mechanism::kReplication;
    case Scheme::kDistCache:
    case Scheme::kRandomSplit:
      break;
  }
  return balance::Mechanism::kDistCache;
}

// Where an object's key falls. Ranks stand for keys that are not known: both values are independent
// hashes of them.
ObjectKey key_of(uint64_t rank, const Demand& demand, const Scenario& scenario) {
  if (rank < demand.keys.size()) return demand.keys[rank];
  if (scenario.bench_keys) {
    const std::string key = fmt::format("key:{:012}", rank);
    return {balance::key_hash(key), proto::key_slot(key)};
  }
  const uint64_t seed = scenario.seed;
  const uint64_t hash = balance::mix(rank, balance::mix(seed, 17));
  return {hash, balance::reduce(balance::mix(rank, balance::mix(seed, 29)), balance::kSlots)};
}

balance::SlotMap make_slots(const Scenario& scenario) {
  std::vector<size_t> servers(scenario.racks, scenario.servers() / scenario.racks);
  for (size_t rack = 0; rack < scenario.servers() % scenario.racks; ++rack) ++servers[rack];
  return balance::SlotMap(servers);
}

double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
  return radius * std::cos(2 * std::numbers::pi * random.unit());
}

void spread_tail(Layout& layout, const Demand& demand, const balance::SlotMap& slots) {
  Random random(balance::mix(layout.scenario.seed, 41));
  std::vector<double> part(slots.shards());
  for (size_t server = 0; server < part.size(); ++server) {
    const double share =
        static_cast<double>(slots.first_slot(server + 1) - slots.first_slot(server)) /
        static_cast<double>(balance::kSlots);
    const double deviation = std::sqrt(demand.tail_squares * share * (1 - share));
    part[server] = std::max(0.0, demand.tail * share + deviation * normal(random));
  }
  const double sum = std::accumulate(part.begin(), part.end(), 0.0);
  for (size_t server = 0; server < part.size() && sum > 0; ++server) {
    layout.cold_share[server] += part[server] * demand.tail / sum;
  }
  layout.tail_share = demand.tail;
}

// Objects held one by one: more than the nodes have room for.
size_t head_of(const Scenario& scenario) {
  return std::max(kLeastHead, 8 * scenario.nodes() * scenario.objects_per_node);
}

// Gives copies out, hottest object first.
class Filler {
 public:
  explicit Filler(const Scenario& scenario)
      : scenario_(scenario),
        mechanism_(mechanism_of(scenario.scheme)),
        placement_(make_placement(scenario)),
        room_(scenario.nodes(), scenario.objects_per_node),
        candidates_(placement_.max_candidates(mechanism_, scenario.spines) + 1) {}

  // Appends the object's holders; returns how many.
  uint32_t place(const ObjectKey& key, double share, std::vector<uint16_t>& holders) {
    if (mechanism_ == balance::Mechanism::kNoCache) return 0;
    size_t count = placement_.candidates(mechanism_, key.hash, key.slot, candidates_.data(),
                                         copies_per_layer(share));
    uint32_t copies = take(count, holders);
    if (copies == 0 && scenario_.scheme == Scheme::kReplication) {
      candidates_[0] = placement_.home(key.slot);
      copies = take(1, holders);
    }
    return copies;
  }

 private:
  uint32_t take(size_t count, std::vector<uint16_t>& holders) {
    uint32_t copies = 0;
    for (size_t i = 0; i < count; ++i) {
      size_t& room = room_[candidates_[i]];
      if (room == 0) continue;
      --room;
      ++copies;
      holders.push_back(candidates_[i]);
    }
    return copies;
  }

  size_t copies_per_layer(double share) const {
    if (scenario_.more_copies_at <= 0 || scenario_.layers < 2) return 1;
    const double quarters = share * scenario_.more_copies_at / (scenario_.capacity_of_node() / 4);
    const double spines = std::ceil((quarters - 1) / static_cast<double>(scenario_.layers - 1));
    return static_cast<size_t>(std::clamp(spines, 1.0, static_cast<double>(scenario_.spines)));
  }

  const Scenario& scenario_;
  balance::Mechanism mechanism_;
  balance::Placement placement_;
  std::vector<size_t> room_;
  std::vector<uint16_t> candidates_;
};

}  // namespace

const char* scheme_name(Scheme scheme) {
  switch (scheme) {
    case Scheme::kNoCache:
      return "NoCache";
    case Scheme::kPartition:
      return "CachePartition";
    case Scheme::kReplication:
      return "CacheReplication";
    case Scheme::kDistCache:
      return "DistCache";
    case Scheme::kRandomSplit:
      return "random split";
  }
  return "";
}

double Scenario::capacity_of_node() const {
  return node_capacity > 0 ? node_capacity
                           : server_capacity * static_cast<double>(servers_per_rack);
}

Demand zipf_demand(uint64_t objects, double alpha, size_t head) {
  Demand demand;
  demand.head.resize(std::min<uint64_t>(objects, head));
  const double all = balance::harmonic_range(alpha, 1, objects);
  for (size_t i = 0; i < demand.head.size(); ++i) {
    demand.head[i] = std::pow(static_cast<double>(i + 1), -alpha) / all;
  }
  demand.tail = balance::harmonic_range(alpha, demand.head.size() + 1, objects) / all;
  demand.tail_squares =
      balance::harmonic_range(2 * alpha, demand.head.size() + 1, objects) / (all * all);
  return demand;
}

balance::Placement make_placement(const Scenario& scenario) {
  const balance::SlotMap slots = make_slots(scenario);
  balance::Placement placement =
      scenario.bench_keys ? balance::Placement(scenario.layers)
                          : balance::Placement(scenario.layers, balance::mix(scenario.seed, 7));
  std::vector<uint16_t> homes(balance::kSlots);
  for (size_t slot = 0; slot < homes.size(); ++slot) homes[slot] = slots.rack(slot);
  placement.set_homes(std::move(homes));
  for (size_t layer = 1; layer < scenario.layers; ++layer) {
    std::vector<balance::Member> members;
    for (size_t i = 0; i < scenario.spines; ++i) {
      const size_t id = scenario.racks + (layer - 1) * scenario.spines + i;
      const bool dead = layer == 1 && std::count(scenario.dead.begin(), scenario.dead.end(), i) > 0;
      const uint64_t name = scenario.bench_keys ? balance::key_hash(fmt::format("spine-{}", i)) : 0;
      members.push_back({static_cast<uint16_t>(id), !dead, name});
    }
    placement.set_members(layer, std::move(members));
  }
  return placement;
}

Layout make_layout(const Scenario& scenario, const Demand& demand) {
  BALLAST_CHECK(scenario.layers >= 1 && scenario.nodes() < balance::kNoNode);
  Layout layout;
  layout.scenario = scenario;
  layout.cold_share.assign(scenario.servers(), 0);
  if (!demand.head.empty()) layout.hottest_share = demand.head.front();
  const balance::SlotMap slots = make_slots(scenario);
  Filler filler(scenario);
  for (size_t rank = 0; rank < demand.head.size(); ++rank) {
    const ObjectKey key = key_of(rank, demand, scenario);
    const double share = demand.head[rank];
    const uint16_t server = slots.shard(key.slot);
    const auto first = static_cast<uint32_t>(layout.holders.size());
    const uint32_t copies = filler.place(key, share, layout.holders);
    if (copies == 0) {
      layout.cold_share[server] += share;
      continue;
    }
    layout.cached.push_back({rank, share, server, first, copies});
    layout.cached_share += share;
  }
  spread_tail(layout, demand, slots);
  return layout;
}

Layout make_layout(const Scenario& scenario) {
  return make_layout(scenario, zipf_demand(scenario.objects, scenario.alpha, head_of(scenario)));
}

Layout make_candidates(const Scenario& scenario) {
  Scenario roomy = scenario;
  roomy.objects_per_node = head_of(scenario);
  return make_layout(roomy, zipf_demand(scenario.objects, scenario.alpha, head_of(scenario)));
}

}  // namespace ballast::sim
