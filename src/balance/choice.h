// SPDX-License-Identifier: Apache-2.0
// The power of two choices with stale loads: a router's view of the nodes' loads and the choice it
// makes from it, and the counter by which a node reports. DistCache, sections 3.1 and 4.2.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/random.h"

namespace ballast::balance {

struct ChoiceOptions {
  bool ageing = true;         // a load not refreshed falls towards zero
  bool own_sent = true;       // add what was sent since the report, or all routers herd between two
  Nanos half_life = kSecond;  // of a load not refreshed; > 0
};

// One per router. Loads are in requests per window of the node; node ids below `nodes`.
class LoadTable {
 public:
  explicit LoadTable(size_t nodes, ChoiceOptions options = {});

  // The node's load as a reply told it. `in_flight`: requests of ours the report cannot have
  // counted yet; 0 if the node counts what it has received and little is on the way.
  void report(uint16_t node, uint32_t load, Nanos now, uint32_t in_flight = 0);
  void sent(uint16_t node) { ++nodes_[node].sent; }
  // The link to the node was lost: what was sent will not be answered.
  void forget(uint16_t node) { nodes_[node] = Node{}; }

  double estimate(uint16_t node, Nanos now) const;

  // Index (not id) of the candidate of the smallest estimate, equal ones at random; at least one
  // candidate.
  size_t choose(std::span<const uint16_t> candidates, Nanos now, Random& random) const;

  size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    uint32_t load = 0;
    uint32_t sent = 0;
    Nanos when = 0;
  };
  ChoiceOptions options_;
  double per_half_life_;
  std::vector<Node> nodes_;
};

// Requests of the last window, sliding by tenths of it, the oldest tenth counted by its share.
// The paper's window is one second. O(1), `now` must not go back.
class LoadWindow {
 public:
  explicit LoadWindow(Nanos window = kSecond);

  void count(Nanos now, uint32_t requests = 1) {
    advance(now);
    counts_[head_] += requests;
    total_ += requests;
  }
  uint32_t load(Nanos now) const;

 private:
  static constexpr size_t kSubWindows = 10;
  void advance(Nanos now);

  Nanos sub_window_;
  Nanos head_start_ = 0;
  size_t head_ = 0;
  uint64_t total_ = 0;
  // One more than the window has: the running tenth and ten past ones, the oldest falling out.
  std::array<uint32_t, kSubWindows + 1> counts_{};
};

}  // namespace ballast::balance
