// SPDX-License-Identifier: Apache-2.0
// The flow-level model against what queueing theory says of processor sharing.
#include "sim/flow_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace ballast::sim {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

FlowModelOptions instances(std::vector<double> capacities, double flow_rate, double load) {
  FlowModelOptions options;
  options.capacities = std::move(capacities);
  options.flow_rate = flow_rate;
  options.load = load;
  options.sizes = *FlowSizes::of_law("exponential", 1);
  options.accepted = kNoLimit;
  options.seed = 20180621;
  return options;
}

// Five to one in capacity, flows a hundredth of the least one's.
FlowModelOptions farm(Dispatching dispatching, double load) {
  std::vector<double> capacities;
  for (int i = 0; i < 40; ++i) capacities.push_back(1000.0 * (1 + i % 5));
  FlowModelOptions options = instances(capacities, 10, load);
  options.sizes = *FlowSizes::of_law("exponential", 10);
  options.accepted = 2;
  options.dispatching = dispatching;
  return options;
}

FlowCounts measure(const FlowModelOptions& options, Nanos warm_up, Nanos measured) {
  FlowModel model(options);
  model.run(warm_up);
  model.take_counts();
  model.run(warm_up + measured);
  return model.take_counts();
}

double mean_seconds(const FlowCounts& counts) { return counts.completion.mean() * 1e-9; }

// Erlang's formula: the share of arrivals that find all `servers` busy, of load * servers Erlang.
double erlang_c(int servers, double load) {
  double blocked = 1;
  for (int i = 1; i <= servers; ++i)
    blocked = blocked * load * servers / (i + blocked * load * servers);
  return blocked / (1 - load * (1 - blocked));
}

TEST(FlowModel, AFlowTakesItsTimeOverOneMinusTheLoadWhateverTheSizes) {
  // M/G/1 with processor sharing is insensitive to the law.
  for (const char* law : {"fixed", "exponential", "web-search"}) {
    for (const double load : {0.4, 0.7}) {
      FlowModelOptions options = instances({1000}, kNoLimit, load);
      options.sizes = *FlowSizes::of_law(law, 2);
      const FlowCounts counts = measure(options, 20 * kSecond, 500 * kSecond);
      const double theory = 2.0 / 1000 / (1 - load);
      EXPECT_NEAR(mean_seconds(counts), theory, 0.05 * theory) << law << " at load " << load;
      EXPECT_NEAR(counts.utilisation(), load, 0.02) << law;
    }
  }
}

TEST(FlowModel, WithALimitOfEachFlowItIsErlangsQueueWhateverTheSizes) {
  // Ten flows at full rate fill the instance: the mean is that of M/M/10.
  for (const char* law : {"fixed", "exponential", "web-search"}) {
    FlowModelOptions options = instances({1000}, 100, 0.75);
    options.sizes = *FlowSizes::of_law(law, 2);
    const FlowCounts counts = measure(options, 20 * kSecond, 300 * kSecond);
    const double theory = 2.0 / 100 * (1 + erlang_c(10, 0.75) / (10 * (1 - 0.75)));
    EXPECT_NEAR(mean_seconds(counts), theory, 0.03 * theory) << law;
  }
}

TEST(FlowModel, AnInstanceThatIsFullRefusesWhatTheorySays) {
  // M/G/1/K with processor sharing: r^K (1 - r) / (1 - r^(K+1)).
  for (const char* law : {"fixed", "exponential", "web-search"}) {
    FlowModelOptions options = instances({1000}, kNoLimit, 0.9);
    options.sizes = *FlowSizes::of_law(law, 2);
    options.accepted = 5;
    const double theory = std::pow(0.9, 5) * 0.1 / (1 - std::pow(0.9, 6));
    EXPECT_NEAR(measure(options, kSecond, 300 * kSecond).refused_share(), theory, 0.004) << law;
  }
}

TEST(FlowModel, NoWorkIsLostAndNoneIsMade) {
  for (const Dispatching dispatching :
       {Dispatching::kEcmp, Dispatching::kAwfd, Dispatching::kTwoChoices, Dispatching::kIdeal}) {
    FlowModelOptions options = farm(dispatching, 0.95);
    options.background = {0.9, false, kSecond};
    FlowModel model(options);
    double served = 0;
    for (int second = 1; second <= 3; ++second) {
      model.run(second * kSecond);
      const FlowCounts counts = model.take_counts();
      served += counts.served;
      double unfinished = 0;
      for (const SharedInstance& instance : model.instances()) unfinished += instance.unfinished();
      EXPECT_NEAR(served + unfinished, model.accepted_bytes(), 1e-7 * served);
      EXPECT_LE(counts.served, counts.offerable * 1.000001);
      EXPECT_LE(model.accepted_bytes(), served + unfinished + 1e-7 * served);
    }
  }
}

TEST(FlowModel, ASeedGivesOneRunAndOneWorkloadWhateverDispatches) {
  const auto counts = [](Dispatching dispatching, uint64_t seed) {
    FlowModelOptions options = farm(dispatching, 0.9);
    options.background.most = 0.5;
    options.seed = seed;
    return measure(options, kSecond / 2, kSecond);
  };
  const FlowCounts one = counts(Dispatching::kAwfd, 7);
  EXPECT_EQ(one.served, counts(Dispatching::kAwfd, 7).served);
  EXPECT_EQ(one.completion.sum(), counts(Dispatching::kAwfd, 7).completion.sum());
  EXPECT_NE(one.served, counts(Dispatching::kAwfd, 8).served);
  for (const Dispatching other :
       {Dispatching::kEcmp, Dispatching::kLeastConnections, Dispatching::kIdeal}) {
    EXPECT_EQ(one.offered, counts(other, 7).offered);
    EXPECT_EQ(one.arrived, counts(other, 7).arrived);
    EXPECT_NEAR(one.offerable, counts(other, 7).offerable, 1e-9 * one.offerable);
  }
}

// Bytes served by instance 0 ... 39, of capacity 1, 2, 3, 4, 5, 1, ...
std::vector<double> served_by_capacity(const FlowModelOptions& options) {
  FlowModel model(options);
  model.run(8 * kSecond);
  std::vector<double> before;
  for (const SharedInstance& instance : model.instances()) before.push_back(instance.served());
  model.run(25 * kSecond);
  std::vector<double> sums(5);
  for (size_t i = 0; i < before.size(); ++i)
    sums[i % 5] += model.instances()[i].served() - before[i];
  return sums;
}

TEST(FlowModel, EachSchemeSharesByWhatItKnows) {
  const auto ecmp = served_by_capacity(farm(Dispatching::kEcmp, 0.3));
  EXPECT_NEAR(ecmp[4] / ecmp[0], 1, 0.03);
  for (const Dispatching by_capacity :
       {Dispatching::kWcmp, Dispatching::kLeastConnections, Dispatching::kAwfd}) {
    const auto served = served_by_capacity(farm(by_capacity, 0.7));
    for (size_t i = 1; i < 5; ++i) {
      EXPECT_NEAR(served[i] / served[0], static_cast<double>(i + 1),
                  0.06 * static_cast<double>(i + 1))
          << dispatching_name(by_capacity) << " " << i + 1;
    }
  }
}

TEST(FlowModel, AwfdSharesByWhatIsFreeAndWcmpDoesNot) {
  const auto worst = [](Dispatching dispatching) {
    FlowModelOptions options = farm(dispatching, 0.7);
    options.background = {0.6, false, 0};
    options.m = 100;
    FlowModel model(options);
    model.run(20 * kSecond);
    double most = 0;
    for (const SharedInstance& instance : model.instances())
      most = std::max(most, instance.served() / instance.offerable());
    return most;
  };
  EXPECT_LT(worst(Dispatching::kAwfd), 0.77);
  EXPECT_GT(worst(Dispatching::kWcmp), 0.95);
}

TEST(FlowModel, AwfdWithoutAnyPollKeepsItsFirstWeights) {
  FlowModelOptions options = farm(Dispatching::kAwfd, 0.7);
  options.missed = 1;
  options.m = 10;
  const auto served = served_by_capacity(options);
  EXPECT_NEAR(served[4] / served[0], 5, 0.2);
  options.background = {0.9, true, 0};
  const FlowCounts blind = measure(options, 10 * kSecond, 20 * kSecond);
  options.missed = 0.5;
  const FlowCounts half_blind = measure(options, 10 * kSecond, 20 * kSecond);
  EXPECT_LT(blind.throughput(), 0.8 * half_blind.throughput());
}

TEST(FlowModel, AwfdFollowsAChange) {
  FlowModelOptions options = farm(Dispatching::kAwfd, 0.5);
  options.background = {0.9, true, 0};
  FlowModel model(options);
  model.run(10 * kSecond);
  model.take_counts();
  for (int change = 0; change < 3; ++change) {
    for (size_t i = 0; i < options.capacities.size(); ++i)
      model.set_background(i, (i + static_cast<size_t>(change)) % 2 == 0 ? 0.9 : 0);
    model.run(model.now() + 100 * kMillisecond);  // some balancers have polled
    EXPECT_LT(model.take_counts().full_rate_share(), 0.9);
    model.run(model.now() + 4 * kSecond);
    model.take_counts();
    model.run(model.now() + kSecond);
    EXPECT_GT(model.take_counts().full_rate_share(), 0.97);
  }
}

TEST(FlowModel, LeastConnectionsGoByTheOpenOnesAlone) {
  // Counted for ever, they would be the flows sent, which is WCMP.
  FlowModelOptions options = farm(Dispatching::kLeastConnections, 0.8);
  options.background = {0.9, true, 0};
  const FlowCounts open = measure(options, 10 * kSecond, 10 * kSecond);
  options.dispatching = Dispatching::kWcmp;
  EXPECT_LT(open.refused_share(), 0.01);
  EXPECT_GT(measure(options, 10 * kSecond, 10 * kSecond).refused_share(), 0.1);
}

TEST(FlowModel, BalancersInStepOnlyOfTheFreestHerd) {
  const auto counts = [](Dispatching dispatching, Nanos interval) {
    FlowModelOptions options = farm(dispatching, 0.8);
    options.interval = interval;
    return measure(options, 5 * kSecond, 15 * kSecond);
  };
  const FlowCounts awfd = counts(Dispatching::kAwfd, 100 * kMillisecond);
  const FlowCounts herd = counts(Dispatching::kLeastCongested, kSecond);
  EXPECT_LT(herd.throughput(), 0.8 * awfd.throughput());
  EXPECT_GT(herd.refused_share(), 0.2);
  EXPECT_EQ(awfd.refused, 0U);
}

TEST(FlowModel, TheIdealStartsEveryFlowAtFullRateWhileThereIsRoom) {
  FlowModelOptions options = farm(Dispatching::kIdeal, 0.9);
  EXPECT_GT(measure(options, 5 * kSecond, 10 * kSecond).full_rate_share(), 0.999);
  options.dispatching = Dispatching::kEcmp;
  EXPECT_LT(measure(options, 5 * kSecond, 10 * kSecond).full_rate_share(), 0.7);
}

TEST(FlowModel, OtherLoadIsDrawnAnewOverTime) {
  FlowModelOptions options = farm(Dispatching::kWcmp, 0.5);
  options.background = {0.8, false, kSecond / 10};
  const FlowCounts counts = measure(options, kSecond, 20 * kSecond);
  const double whole = std::accumulate(options.capacities.begin(), options.capacities.end(), 0.0);
  EXPECT_NEAR(counts.offerable / (whole * counts.seconds), 0.6, 0.02);
  options.background = {0.8, true, 0};
  FlowModel model(options);
  std::vector<double> before;
  for (const SharedInstance& instance : model.instances()) {
    before.push_back(instance.available() / instance.capacity());
    EXPECT_TRUE(before.back() == 1 || std::abs(before.back() - 0.2) < 1e-9);
  }
  model.run(kSecond);
  size_t changed = 0;
  for (size_t i = 0; i < before.size(); ++i)
    changed += model.instances()[i].available() / model.instances()[i].capacity() != before[i];
  EXPECT_EQ(changed, 0U);
  model.set_background(3, 0.25);
  EXPECT_DOUBLE_EQ(model.instances()[3].available(), 0.75 * model.instances()[3].capacity());
}

}  // namespace
}  // namespace ballast::sim
