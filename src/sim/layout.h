// SPDX-License-Identifier: Apache-2.0
// A simulated tier: its nodes and servers, which object is where, by the product's placement, and
// which objects the nodes hold: each the hottest of those that are placed on it, as many as fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "balance/placement.h"

namespace ballast::sim {

enum class Scheme : uint8_t {
  kNoCache,
  kPartition,    // each object at one of all nodes
  kReplication,  // the hottest at every spine, the next ones at their leaf
  kDistCache,    // leaf and spine, the less loaded is asked
  kRandomSplit,  // leaf and spine, one at random is asked
};
inline constexpr Scheme kSchemes[] = {Scheme::kNoCache, Scheme::kPartition, Scheme::kReplication,
                                      Scheme::kDistCache, Scheme::kRandomSplit};
const char* scheme_name(Scheme scheme);

// What of a key decides its place.
struct ObjectKey {
  uint64_t hash = 0;
  size_t slot = 0;
};

// Shares of all requests by object, most frequent first. Only the head is held one by one; of the
// tail the sum and the sum of squares are exact.
struct Demand {
  std::vector<double> head;
  double tail = 0;
  double tail_squares = 0;
  std::vector<ObjectKey> keys = {};  // of the first ranks, where known; the others' are random
};
Demand zipf_demand(uint64_t objects, double alpha, size_t head);

// A write's work in requests. Both phases of all copies: at the server (with its home) and at each
// node that holds one.
struct WriteCost {
  double server_per_copy = 0.5;
  double node_per_copy = 2;
};

struct Scenario {
  size_t racks = 32;
  size_t servers_per_rack = 32;
  size_t spines = 32;  // of each upper layer
  size_t layers = 2;   // the leaves' layer counted
  size_t objects_per_node = 100;
  uint64_t objects = 100'000'000;
  double alpha = 0.99;
  Scheme scheme = Scheme::kDistCache;
  uint64_t seed = 1;
  double server_capacity = 1;
  double node_capacity = 0;  // 0: the sum of a rack's servers, as in the paper's evaluation
  size_t server_count = 0;   // if not 0: so many in all, dealt evenly to the racks
  // Objects are the keys of `ballast bench` and spines those of `ballast cache up`, so that the
  // placement is that of a real tier; else each seed has a placement of its own.
  bool bench_keys = false;
  double writes = 0;              // share of the requests
  double direct = 0;              // share of the requests: reads that no copy answers
  WriteCost cost = {};            //
  double more_copies_at = 0;      // > 0: at this total rate no copy shall get over a quarter of a
                                  // node's capacity, so very hot objects get further spines
  std::vector<size_t> dead = {};  // spines of layer 1 out of the placement

  size_t servers() const { return server_count > 0 ? server_count : racks * servers_per_rack; }
  double copy_reads() const { return 1 - writes - direct; }  // reads that a copy may answer
  size_t nodes() const { return racks + (layers - 1) * spines; }
  double capacity_of_node() const;
};

// An object with at least one copy.
struct CachedObject {
  uint64_t rank = 0;
  double share = 0;
  uint16_t server = 0;
  uint32_t first = 0;  // of its holders
  uint32_t copies = 0;
};

struct Layout {
  Scenario scenario;
  std::vector<CachedObject> cached;  // by rank
  std::vector<uint16_t> holders;     // node ids: leaves from 0, then the spines layer by layer
  std::vector<double> cold_share;    // by server: requests for objects without a copy
  double hottest_share = 0;
  double cached_share = 0;
  double tail_share = 0;  // part of cold_share that was spread as a sum

  std::span<const uint16_t> holders_of(const CachedObject& object) const {
    return {holders.data() + object.first, object.copies};
  }
};

balance::Placement make_placement(const Scenario& scenario);

// The tail's share at a server is drawn from the distribution that hashing so many objects gives
// (normal, exact mean and variance), so the sum stays exact.
Layout make_layout(const Scenario& scenario, const Demand& demand);
// Of Zipf's law as the scenario says, with a head large enough for every node to fill.
Layout make_layout(const Scenario& scenario);
// The same objects, each with all the nodes that may hold it, as if those had room for all.
Layout make_candidates(const Scenario& scenario);

}  // namespace ballast::sim
