// SPDX-License-Identifier: Apache-2.0
// Dispatching by the open connections that one balancer counts: least connections and the power of
// two choices (Mitzenmacher 1996). Needs no poll; knows nothing of other balancers or other load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "balance/dispatch_table.h"
#include "base/random.h"

namespace ballast::balance {

class ConnectionCounts {
 public:
  // An instance of weight w is to hold w times the connections of one of weight 1. Weights from 1
  // to DispatchTable::kMostWeight, at least one.
  explicit ConnectionCounts(std::span<const uint32_t> weights);

  void opened(uint16_t instance) { ++instances_[instance].open; }
  void closed(uint16_t instance) { --instances_[instance].open; }
  uint32_t open(uint16_t instance) const { return instances_[instance].open; }

  // Where (open + 1) / weight is least; equal ones at random. O(instances).
  uint16_t least(Random& random) const;
  // Of two different instances taken by the flow's hash, where (open + 1) / weight is less, the
  // first of equal ones. O(1).
  uint16_t of_two(FlowHash hash) const;

 private:
  struct Instance {
    uint32_t weight = 1;
    uint32_t open = 0;
  };
  static bool less(const Instance& a, const Instance& b) {
    return (uint64_t{a.open} + 1) * b.weight < (uint64_t{b.open} + 1) * a.weight;
  }

  std::vector<Instance> instances_;
};

}  // namespace ballast::balance
