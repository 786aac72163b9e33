// SPDX-License-Identifier: Apache-2.0
#include "sim/queueing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "sim/alias_table.h"
#include "sim/fluid.h"
#include "sim/sustained.h"

namespace ballast::sim {
namespace {

constexpr uint64_t kSeed = 20190225;

Scenario small(Scheme scheme = Scheme::kDistCache, double alpha = 0.99) {
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

QueueingOptions at(double rate) {
  QueueingOptions options;
  options.rate = rate;
  options.seed = kSeed;
  return options;
}

TEST(AliasTable, DrawsByTheWeights) {
  const std::vector<double> weights{0.5, 0, 3, 1, 0.001, 2};
  const AliasTable table(weights);
  Random random(kSeed);
  std::vector<double> seen(weights.size());
  constexpr double kDraws = 1e6;
  for (int i = 0; i < static_cast<int>(kDraws); ++i)
    seen[table.pick(random.next())] += 6.501 / kDraws;
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_NEAR(seen[i], weights[i], 0.02 * weights[i] + 0.0003) << i;
  }
  EXPECT_EQ(seen[1], 0);
}

// One server of one rack, nothing cached.
Scenario one_server() {
  Scenario scenario;
  scenario.racks = scenario.servers_per_rack = scenario.spines = 1;
  scenario.scheme = Scheme::kNoCache;
  return scenario;
}

TEST(Queueing, AFullQueueLosesWhatErlangSays) {
  // M/M/1 with room for 4: the model bounds the waiting work, not the number, so it lies near.
  const Layout layout = make_layout(one_server(), Demand{{1.0}, 0, 0});
  QueueingOptions options = at(3);
  options.queue = 4;
  EXPECT_NEAR(measure(layout, options, {0, 100 * kSecond}).loss(), 2.0 / 3, 0.02);
  options.rate = 0.2;
  EXPECT_LT(measure(layout, options, {0, 100 * kSecond}).loss(), 0.02);
}

TEST(Queueing, PacedRequestsOfFixedServiceLoseNothingUpToTheCapacity) {
  const Layout layout = make_layout(one_server(), Demand{{1.0}, 0, 0});
  QueueingOptions options = at(0.999);
  options.paced = true;
  options.exponential_service = false;
  options.queue = 2;
  EXPECT_EQ(measure(layout, options, {0, 20 * kSecond}).lost, 0U);
  options.rate = 1.25;
  EXPECT_NEAR(measure(layout, options, {0, 20 * kSecond}).loss(), 0.2, 0.005);
}

TEST(Queueing, TheSameSeedGivesTheSameRun) {
  const Layout layout = make_layout(small());
  const Counts one = measure(layout, at(14), {0, kSecond});
  const Counts same = measure(layout, at(14), {0, kSecond});
  EXPECT_EQ(one.requests, same.requests);
  EXPECT_EQ(one.at_nodes, same.at_nodes);
  QueueingOptions other = at(14);
  other.seed = kSeed + 1;
  EXPECT_NE(measure(layout, other, {0, kSecond}).at_nodes, one.at_nodes);
}

TEST(Queueing, ReachesTheFluidBoundAndNotMuchMore) {
  for (const Scheme scheme : {Scheme::kNoCache, Scheme::kPartition, Scheme::kDistCache}) {
    const Layout layout = make_layout(small(scheme, 0.9));
    const double bound = fluid_bound(layout).rate;
    const double got =
        sustained_rate(layout, at(1), {1500 * kMillisecond, 4 * kSecond}, bound / 2, bound * 1.5);
    EXPECT_GT(got, bound * 0.88) << scheme_name(scheme);
    EXPECT_LT(got, bound * 1.1) << scheme_name(scheme);
  }
}

TEST(Queueing, SplittingAtRandomIsUnstableWhereTwoChoicesAreStable) {
  // One very hot object and others that share its nodes: only choosing keeps them out of the way.
  Scenario scenario = small(Scheme::kDistCache, 1.2);
  const Layout two = make_layout(scenario);
  scenario.scheme = Scheme::kRandomSplit;
  const Layout random = make_layout(scenario);
  const double rate = (fluid_bound(two).node_rate + fluid_bound(random).node_rate) / 2;
  ASSERT_GT(rate, fluid_bound(random).node_rate * 1.05);
  QueueingOptions options = at(rate);
  options.queue = 1e12;
  const auto backlog = [&](const Layout& layout, Nanos until) {
    QueueingModel model(layout, options);
    model.run(until);
    return model.largest_backlog();
  };
  EXPECT_GT(backlog(random, 20 * kSecond), 1.7 * backlog(random, 10 * kSecond));
  EXPECT_LT(backlog(two, 20 * kSecond), 0.1 * backlog(random, 20 * kSecond));
}

TEST(Queueing, WritesCostTheServerAndTheHolders) {
  Scenario scenario = small();
  scenario.writes = 0.5;
  const Layout layout = make_layout(scenario, Demand{{1.0}, 0, 0});
  // 1 + 2 * 0.5 for half of the requests, and reads that find invalid copies besides.
  EXPECT_LT(measure(layout, at(0.25), {0, 20 * kSecond}).loss(), 0.01);
  EXPECT_GT(measure(layout, at(1.5), {0, 20 * kSecond}).loss(), 0.05);
  const Counts few = measure(layout, at(0.25), {0, 20 * kSecond});
  // A read comes while no copy is good about as often as the server is busy with writes.
  const double reads_at_nodes =
      static_cast<double>(few.at_nodes) / static_cast<double>(few.requests);
  EXPECT_LT(reads_at_nodes, 0.42);
  EXPECT_GT(reads_at_nodes, 0.3);
  // Invalidations and fills can fill the nodes by themselves.
  scenario.cost.node_per_copy = 40;
  const Layout costly = make_layout(scenario, Demand{{1.0}, 0, 0});
  EXPECT_GT(measure(costly, at(0.25), {0, 20 * kSecond}).loss(), 0.05);
}

TEST(Queueing, SharedReadsKeepTheReadersOfAWrittenObjectFromItsServer) {
  Scenario scenario = small();
  scenario.writes = 0.02;
  const Layout layout = make_layout(scenario);
  QueueingOptions options = at(0.8 * fluid_bound(layout).rate);
  options.routers = 2;
  const auto lost = [&](bool collapse) {
    options.collapse = collapse;
    QueueingModel model(layout, options);
    model.run(5 * kSecond);
    return model.take_counts().worst_loss;
  };
  EXPECT_LT(lost(true), 0.01);
  EXPECT_GT(lost(false), 0.1);
}

TEST(Queueing, AdmissionFillsTheNodesAndFollowsWhatTurnsHot) {
  const Scenario scenario = small();
  const Layout hottest = make_layout(scenario);
  const Layout candidates = make_candidates(scenario);
  QueueingOptions options = at(0.5 * fluid_bound(hottest).rate);
  const auto share = [](QueueingModel& model, Nanos until) {
    model.take_counts();
    model.run(until);
    const Counts counts = model.take_counts();
    return static_cast<double>(counts.at_nodes) / static_cast<double>(counts.requests);
  };
  QueueingModel fixed(hottest, options);
  const double wanted = share(fixed, 2 * kSecond);
  options.admit_objects = scenario.objects_per_node;
  QueueingModel admitted(candidates, options);
  EXPECT_LT(share(admitted, 50 * kMillisecond), 0.5 * wanted);
  admitted.run(10 * kSecond);
  EXPECT_GT(share(admitted, 12 * kSecond), 0.85 * wanted);
  admitted.shift(candidates.cached.size() / 2);
  EXPECT_LT(share(admitted, 12 * kSecond + 50 * kMillisecond), 0.5 * wanted);
  admitted.run(24 * kSecond);
  EXPECT_GT(share(admitted, 26 * kSecond), 0.85 * wanted);
}

TEST(Queueing, ADeadSpineLosesItsReadsUntilItIsOutOfThePlacement) {
  Scenario scenario = small();
  const Layout before = make_layout(scenario);
  scenario.dead = {0};
  const Layout after = make_layout(scenario);
  QueueingModel model(before, at(8));
  model.run(2 * kSecond);
  EXPECT_LT(model.take_counts().loss(), 0.01);
  model.set_dead(0, true);
  model.run(4 * kSecond);
  EXPECT_GT(model.take_counts().loss(), 0.02);
  model.change_layout(after);
  model.run(6 * kSecond);
  EXPECT_LT(model.take_counts().loss(), 0.01);
}

TEST(Estimate, StudentsInterval) {
  const std::vector<double> samples{1, 2, 3};
  EXPECT_DOUBLE_EQ(estimate(samples).mean, 2);
  EXPECT_NEAR(estimate(samples).half_width, 4.303 / std::sqrt(3.0), 1e-9);
  EXPECT_EQ(estimate(std::vector<double>{5}).half_width, 0);
}

TEST(RunParallel, CallsEachOnce) {
  std::vector<std::atomic<int>> calls(100);
  size_t last = 0;
  run_parallel(calls.size(), [&](size_t i) { ++calls[i]; }, [&](size_t done) { last = done; });
  EXPECT_TRUE(std::all_of(calls.begin(), calls.end(), [](const auto& n) { return n == 1; }));
  EXPECT_EQ(last, calls.size());
}

}  // namespace
}  // namespace ballast::sim
