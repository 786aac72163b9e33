// SPDX-License-Identifier: Apache-2.0
#include "sim/fluid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/random.h"
#include "sim/max_flow.h"

namespace ballast::sim {
namespace {

Scenario small(Scheme scheme, double alpha = 0.99) {
  Scenario scenario;
  scenario.racks = 4;
  scenario.servers_per_rack = 4;
  scenario.spines = 4;
  scenario.objects = 1'000'000;
  scenario.objects_per_node = 20;
  scenario.alpha = alpha;
  scenario.scheme = scheme;
  return scenario;
}

TEST(Fluid, NoCacheIsTheBusiestServer) {
  const Layout layout = make_layout(small(Scheme::kNoCache));
  const double most = *std::max_element(layout.cold_share.begin(), layout.cold_share.end());
  const Bound bound = fluid_bound(layout);
  EXPECT_DOUBLE_EQ(bound.rate, 1 / most);
  EXPECT_TRUE(bound.server_bound());
  EXPECT_EQ(layout.cold_share[bound.server], most);
}

TEST(Fluid, OneKeyFillsItsNodes) {
  const Demand one{{1.0}, 0, 0};
  const auto rate = [&](Scheme scheme, size_t layers = 2) {
    Scenario scenario = small(scheme);
    scenario.layers = layers;
    return fluid_bound(make_layout(scenario, one)).rate;
  };
  EXPECT_DOUBLE_EQ(rate(Scheme::kNoCache), 1);
  EXPECT_NEAR(rate(Scheme::kPartition), 4, 1e-9);
  EXPECT_NEAR(rate(Scheme::kDistCache), 8, 1e-9);
  EXPECT_NEAR(rate(Scheme::kDistCache, 4), 16, 1e-9);
  EXPECT_NEAR(rate(Scheme::kRandomSplit), 8, 1e-9);
  EXPECT_NEAR(rate(Scheme::kReplication), 16, 1e-9);
}

TEST(Fluid, UniformRequestsFillAllServersAndCachesHardlyMatter) {
  for (const Scheme scheme : kSchemes) {
    const double rate = fluid_bound(make_layout(small(scheme, 0))).rate;
    EXPECT_GT(rate, 15.5) << scheme_name(scheme);
    EXPECT_LT(rate, 16.1) << scheme_name(scheme);
  }
}

TEST(Fluid, WritesOfOneKeyCostWhatIsSaid) {
  Scenario scenario = small(Scheme::kDistCache);
  scenario.writes = 0.5;
  const Layout layout = make_layout(scenario, Demand{{1.0}, 0, 0});
  // A write is 1 + 2 * 0.5 at the server; half of the rate are writes.
  EXPECT_NEAR(fluid_bound(layout).server_rate, 1, 1e-12);
  // Two nodes of 4: half of the rate to be split, and 2 * 0.5 at each.
  EXPECT_NEAR(fluid_bound(layout).node_rate, 8 / 2.5, 1e-9);
  scenario.writes = 1;
  EXPECT_NEAR(fluid_bound(make_layout(scenario, Demand{{1.0}, 0, 0})).node_rate, 2, 1e-9);
}

// Hall's condition over every set of objects.
double brute_force(const Layout& layout) {
  const std::vector<double> fixed = node_write_work(layout);
  double least = std::numeric_limits<double>::infinity();
  for (uint32_t set = 1; set < (1U << layout.cached.size()); ++set) {
    double work = 0;
    std::set<uint16_t> nodes;
    for (size_t i = 0; i < layout.cached.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      work += layout.cached[i].share * (1 - layout.scenario.writes);
      for (const uint16_t node : layout.holders_of(layout.cached[i])) nodes.insert(node);
    }
    for (const uint16_t node : nodes) work += fixed[node];
    least = std::min(least,
                     layout.scenario.capacity_of_node() * static_cast<double>(nodes.size()) / work);
  }
  return least;
}

TEST(Fluid, EqualsTheBestOfAllObjectSetsOnTinyCases) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Scenario scenario = small(random.below(4) == 0 ? Scheme::kReplication : Scheme::kDistCache);
    scenario.seed = seed;
    scenario.layers = 2 + random.below(2);
    scenario.writes = random.below(2) == 0 ? 0 : 0.1;
    Demand demand;
    double sum = 0;
    for (size_t i = 0; i < 8; ++i) demand.head.push_back(0.05 + random.unit() * random.unit());
    for (const double share : demand.head) sum += share;
    for (double& share : demand.head) share /= sum;
    const Layout layout = make_layout(scenario, demand);
    ASSERT_EQ(layout.cached.size(), 8U);
    const Bound bound = fluid_bound(layout);
    EXPECT_NEAR(bound.node_rate / brute_force(layout), 1, 1e-9) << "seed " << seed;
    // The set named is the one that binds.
    double work = 0;
    for (const uint32_t i : bound.tight_objects)
      work += layout.cached[i].share * (1 - scenario.writes);
    for (const uint16_t node : bound.tight_nodes) work += node_write_work(layout)[node];
    EXPECT_NEAR(work * bound.node_rate, 4.0 * static_cast<double>(bound.tight_nodes.size()), 1e-6);
  }
}

TEST(Fluid, ASplitAtRandomNeverCarriesMoreThanTheBestOne) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Scenario scenario = small(Scheme::kDistCache);
    scenario.seed = seed;
    const double best = fluid_bound(make_layout(scenario)).node_rate;
    scenario.scheme = Scheme::kRandomSplit;
    EXPECT_LE(fluid_bound(make_layout(scenario)).node_rate, best * (1 + 1e-9)) << "seed " << seed;
  }
}

TEST(Fluid, TheHottestKeyAloneIsTheTightSetWhenItOutgrowsItsNodes) {
  Scenario scenario = small(Scheme::kDistCache, 1.5);
  const Layout layout = make_layout(scenario);
  const Bound bound = fluid_bound(layout);
  ASSERT_FALSE(bound.tight_objects.empty());
  EXPECT_EQ(bound.tight_objects[0], 0U);
  EXPECT_LE(bound.node_rate, 8 / layout.hottest_share * (1 + 1e-9));
  EXPECT_DOUBLE_EQ(theorem_rate(layout), 2 / layout.hottest_share);
}

TEST(MaxFlow, NothingIsCutWhenAllFits) {
  const std::vector<uint16_t> both{0, 1};
  FlowProblem problem{{1, 2}, {2, 1}, {both, both}};
  EXPECT_TRUE(find_cut(problem).objects.empty());
  problem.capacity[1] = 0.5;
  EXPECT_EQ(find_cut(problem).objects.size(), 2U);
  EXPECT_EQ(find_cut(problem).nodes.size(), 2U);
}

TEST(Fluid, ReadsThatNoCopyAnswersAreTheServersWork) {
  Scenario scenario;
  scenario.racks = scenario.spines = scenario.servers_per_rack = 1;
  scenario.objects_per_node = 1;
  scenario.direct = 0.25;
  const Bound bound = fluid_bound(make_layout(scenario, Demand{.head = {1.0}}));
  EXPECT_NEAR(bound.server_rate, 4, 1e-9);
  EXPECT_NEAR(bound.node_rate, 2 / 0.75, 1e-9);
}

}  // namespace
}  // namespace ballast::sim
