// SPDX-License-Identifier: Apache-2.0
// How many cache nodes, how large, for a workload: the smallest tier whose fluid bound carries the
// rate with headroom under every placement tried, by the product's own placement. Two copies of an
// object are what the tier makes; if they are too few, the plan says what more of them would do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/layout.h"
#include "sim/sustained.h"

namespace ballast::sim {

// Shares by object with the first `head` of them one by one.
using DemandOf = std::function<Demand(size_t head)>;

struct Target {
  double rate = 0;         // requests a second, > 0
  double server_rate = 0;  // that one server answers, > 0
  double node_rate = 0;    // that one leaf or spine answers, > 0
  size_t servers = 0;      // 1 to balance::kSlots
  double headroom = 0.2;   // the tier shall carry rate * (1 + headroom)
  double writes = 0;       // shares of the requests
  double direct = 0;       // reads whose replies are not kept as copies
  size_t most_objects_per_node = 100'000;
  size_t runs = 3;  // placements tried, at least 1
  uint64_t seed = 1;
  std::function<void(const std::string& stage)> progress = {};

  double wanted() const { return rate * (1 + headroom); }
};

struct MechanismRate {
  Scheme scheme = Scheme::kNoCache;
  bool more_copies = false;  // very hot objects on further spines
  Estimate rate;             // requests a second, fluid bound over the runs
  double least = 0;          // over the runs
  std::string bound_by;      // in the run with the least
};

struct Plan {
  enum class Verdict : uint8_t {
    kNotNeeded,
    kPlanned,
    kMoreCopies,  // the tier below would carry it if very hot objects had more than two copies
    kImpossible,
  };

  Verdict verdict = Verdict::kNotNeeded;
  std::string reason;  // a sentence without its end: why it is not kPlanned
  // The tier, in units of one server's rate; for kImpossible the largest one tried.
  Scenario tier;
  std::vector<MechanismRate> mechanisms;
  double cached_share = 0;     // of the requests: to objects with a copy
  size_t cached_objects = 0;   // in the first run, as the rest
  double busiest_server = 0;   // part of its capacity in use at the target rate, best split
  double busiest_nodes = 0;    //
  double formula_objects = 0;  // m·l·log l + m·log m of the paper, in all nodes
  // By rank, of the objects that break max p·R <= T/2 at the wanted rate: so many copies that none
  // gets more than T/4.
  std::vector<size_t> copies_wanted;
  double theorem_margin = 0;  // (T/2) / (max p·R) at the target rate
  double lost = 0;            // share of requests that the queueing model loses at the target rate
};

inline constexpr size_t kMostPlannedNodes = 4096;
inline constexpr size_t kMostPlannedCopies = 1'000'000;

Plan make_plan(const DemandOf& demand, const Target& target);

}  // namespace ballast::sim
