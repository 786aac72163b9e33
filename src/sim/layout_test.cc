// SPDX-License-Identifier: Apache-2.0
#include "sim/layout.h"

#include <gtest/gtest.h>

#include <numeric>

namespace ballast::sim {
namespace {

Scenario small(Scheme scheme) {
  Scenario scenario;
  scenario.racks = 4;
  scenario.servers_per_rack = 4;
  scenario.spines = 4;
  scenario.objects = 1'000'000;
  scenario.objects_per_node = 10;
  scenario.scheme = scheme;
  return scenario;
}

TEST(Layout, SharesSumToOneWhateverIsHeldOneByOne) {
  for (const size_t head : {size_t{1}, size_t{100}, size_t{100'000}, size_t{2'000'000}}) {
    for (const double alpha : {0.0, 0.9, 1.0, 1.3}) {
      const Layout layout =
          make_layout(small(Scheme::kDistCache), zipf_demand(1'000'000, alpha, head));
      const double cold = std::accumulate(layout.cold_share.begin(), layout.cold_share.end(), 0.0);
      EXPECT_NEAR(cold + layout.cached_share, 1, 1e-9) << head << " " << alpha;
    }
  }
}

TEST(Layout, TheDrawnTailSpreadsLikeTheHashedObjects) {
  // The spread of the servers' shares, once with the tail drawn, once with all objects hashed.
  const auto deviation = [](size_t head) {
    double sum = 0;
    size_t count = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Scenario scenario = small(Scheme::kNoCache);
      scenario.seed = seed;
      Demand demand = zipf_demand(200'000, 0, head);
      const Layout layout = make_layout(scenario, demand);
      for (const double share : layout.cold_share) {
        sum += (share - 1.0 / 16) * (share - 1.0 / 16);
        ++count;
      }
    }
    return sum / static_cast<double>(count);
  };
  const double drawn = deviation(1);
  const double hashed = deviation(200'000);
  EXPECT_NEAR(drawn / hashed, 1, 0.35);
}

TEST(Layout, NodesHoldTheHottestOfTheirOwn) {
  for (const Scheme scheme : kSchemes) {
    const Layout layout = make_layout(small(scheme));
    std::vector<size_t> held(layout.scenario.nodes());
    for (const uint16_t node : layout.holders) ++held[node];
    for (const size_t count : held) {
      EXPECT_EQ(count, scheme == Scheme::kNoCache ? 0 : 10) << scheme_name(scheme);
    }
    if (scheme == Scheme::kNoCache) continue;
    const CachedObject& hottest = layout.cached.front();
    EXPECT_EQ(hottest.rank, 0);
    const uint32_t copies = scheme == Scheme::kPartition     ? 1
                            : scheme == Scheme::kReplication ? 4
                                                             : 2;
    EXPECT_EQ(hottest.copies, copies) << scheme_name(scheme);
  }
}

TEST(Layout, DeadSpinesHoldNothingAndLayersAddCopies) {
  Scenario scenario = small(Scheme::kDistCache);
  scenario.layers = 3;
  scenario.dead = {1, 2};
  const Layout layout = make_layout(scenario);
  EXPECT_EQ(layout.cached.front().copies, 3);
  for (const uint16_t node : layout.holders) {
    EXPECT_NE(node, 5);
    EXPECT_NE(node, 6);
  }
}

TEST(Layout, VeryHotObjectsGetFurtherSpines) {
  Scenario scenario = small(Scheme::kDistCache);
  EXPECT_EQ(make_layout(scenario).cached.front().copies, 2);
  scenario.more_copies_at = 40;  // the hottest gets 2.6 a second of it; a quarter of a node is 1
  const Layout layout = make_layout(scenario);
  EXPECT_EQ(layout.cached.front().copies, 3);
  EXPECT_EQ(layout.cached.back().copies, 1);
}

TEST(Layout, ServersAreDealtEvenlyToTheRacks) {
  Scenario scenario;
  scenario.racks = 3;
  scenario.server_count = 10;
  scenario.spines = 2;
  scenario.objects_per_node = 10;
  scenario.objects = 100'000;
  scenario.alpha = 0;
  const Layout layout = make_layout(scenario);
  ASSERT_EQ(layout.cold_share.size(), 10U);
  for (const double share : layout.cold_share) EXPECT_NEAR(share, 0.1, 0.01);
  // Four servers of the first rack, three of each other.
  for (const CachedObject& object : layout.cached) {
    for (const uint16_t node : layout.holders_of(object)) {
      if (node >= 3) continue;
      EXPECT_EQ(node, object.server < 4 ? 0 : object.server < 7 ? 1 : 2);
    }
  }
}

TEST(Layout, KnownKeysAreWhereTheirSlotsAre) {
  Scenario scenario;
  scenario.racks = 4;
  scenario.servers_per_rack = 1;
  scenario.spines = 4;
  scenario.objects_per_node = 8;
  Demand demand{.head = {0.4, 0.3, 0.3}, .tail = 0};
  demand.keys = {{1, 0}, {2, balance::kSlots - 1}};
  const Layout layout = make_layout(scenario, demand);
  EXPECT_EQ(layout.cached[0].server, 0);
  EXPECT_EQ(layout.cached[1].server, 3);
}

}  // namespace
}  // namespace ballast::sim
