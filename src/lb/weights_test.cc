// SPDX-License-Identifier: Apache-2.0
#include "lb/weights.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "base/random.h"
#include "wire/lb.h"

namespace ballast::lb {
namespace {

using model::Scheduler;

// A VIP whose instances the test loads as it likes.
class WeightsTest : public testing::Test {
 protected:
  WeightsTest() {
    vip_.load = model::LoadSource::kAgent;
    vip_.scheduler = Scheduler::kAwfd;
  }
  void instances(size_t count) {
    candidates_.resize(count);
    loads_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      candidates_[i].id = static_cast<uint32_t>(100 + i);
      candidates_[i].load = &loads_[i];
    }
  }
  void use(size_t i, double utilisation) {
    loads_[i].utilisation = utilisation;
    ++loads_[i].answers;
    loads_[i].missed = 0;
  }
  std::vector<uint32_t> next() {
    last_ = weights_.next(vip_, candidates_);
    std::vector<uint32_t> out;
    for (const Weighed& each : last_) out.push_back(each.weight);
    return out;
  }
  std::vector<uint32_t> of(const std::vector<double>& utilisations) {
    instances(utilisations.size());
    for (size_t i = 0; i < utilisations.size(); ++i) use(i, utilisations[i]);
    weights_ = {};
    return next();
  }
  double share(const std::vector<uint32_t>& weights, size_t i) {
    return weights[i] /
           static_cast<double>(std::accumulate(weights.begin(), weights.end(), uint64_t{0}));
  }

  model::Vip vip_;
  std::vector<Candidate> candidates_;
  std::vector<LoadState> loads_;
  Weights weights_;
  std::vector<Weighed> last_;
};

using List = std::vector<uint32_t>;

TEST_F(WeightsTest, AreAwfdsLaw) {
  EXPECT_EQ(of({0, 0.5, 0.75, 1}), (List{16, 8, 4, 0}));
  EXPECT_EQ(last_[3].reason, Reason::kFull);
  vip_.m = 4;
  EXPECT_EQ(of({0, 0.76}), (List{4, 0}));  // 24 % of the best one's headroom
  EXPECT_EQ(of({0, 0.75}), (List{4, 1}));
  vip_.m = 1;
  EXPECT_EQ(of({0.2, 0.21, 0.2}), (List{1, 0, 1}));
  vip_.m = 0;
  EXPECT_EQ(of({0.2, 0.9, 1}), (List{1, 1, 1}));
}

TEST_F(WeightsTest, MultiplyingAllCapacitiesChangesNothing) {
  const uint64_t seed = system_seed();
  Random random(seed);
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random.next() % n); };
  for (int round = 0; round < 300; ++round) {
    vip_.m = 1 + pick(64);
    instances(1 + pick(300));
    const double times = std::pow(10, static_cast<int>(pick(9)) - 4);
    std::vector<double> capacities;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      use(i, (pick(1001)) / 1000.0);
      capacities.push_back(1 + pick(8));
      candidates_[i].capacity = capacities[i];
    }
    weights_ = {};
    const List weights = next();
    EXPECT_GT(std::accumulate(weights.begin(), weights.end(), 0u), 0u) << seed;
    EXPECT_LE(std::set(weights.begin(), weights.end()).size(), BL_MOST_CLASSES + 1u) << seed;
    for (size_t i = 0; i < candidates_.size(); ++i) candidates_[i].capacity = capacities[i] * times;
    weights_ = {};
    EXPECT_EQ(next(), weights) << seed;
  }
}

TEST_F(WeightsTest, AHundredLoadedInstancesDoNotAllGetNothing) {
  for (const double least : {0.0, 0.1}) {
    vip_.least_share = least;
    std::vector<double> loads(500, 0.999);
    loads[17] = 0.5;
    List weights = of(loads);
    EXPECT_GT(weights[17], 0u);
    EXPECT_EQ(weights[18] > 0, least > 0);
    EXPECT_EQ(of(std::vector<double>(500, 1)), List(500, 1));
    EXPECT_EQ(of(std::vector<double>(500, 0.9999)), List(500, 16));
  }
}

TEST_F(WeightsTest, LeastShareIsKept) {
  vip_.least_share = 0.2;
  const List weights = of({0, 0.1, 0.5, 1, 1});
  for (const size_t i : {3, 4}) {
    EXPECT_NEAR(share(weights, i), 0.2 / 5, 1e-4);
    EXPECT_EQ(last_[i].reason, Reason::kLeastShare);
  }
  EXPECT_NEAR(weights[0] / static_cast<double>(weights[2]), 2, 1e-3);
  candidates_[3].operation = model::Operation::kDrain;
  EXPECT_EQ(next()[3], 0u);
}

TEST_F(WeightsTest, WhoMayNotGetAnythingDoesNot) {
  vip_.least_share = 0.5;
  for (const Scheduler scheduler :
       {Scheduler::kAwfd, Scheduler::kStatic, Scheduler::kEcmp, Scheduler::kLeastConnections}) {
    vip_.scheduler = scheduler;
    instances(8);
    candidates_[7].is_healthy = true;
    candidates_[0].operation = model::Operation::kDrain;
    candidates_[1].operation = model::Operation::kMaintenance;
    candidates_[2].is_healthy = false;
    candidates_[3].has_next_hop = false;
    candidates_[4].weight = 0;
    loads_[5].drains = true;
    loads_[6].factor = 0;
    for (size_t i = 0; i < 8; ++i) use(i, 0.1);
    const List weights = next();
    for (size_t i = 0; i < 7; ++i) EXPECT_EQ(weights[i], 0u) << i;
    EXPECT_GT(weights[7], 0u);
    const Reason reasons[] = {Reason::kDrained,   Reason::kMaintenance, Reason::kUnhealthy,
                              Reason::kNoNextHop, Reason::kNoWeight,    Reason::kDrainedAgent,
                              Reason::kNoWeight,  Reason::kWeighed};
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(last_[i].reason, reasons[i]) << i;
    candidates_[7].is_healthy = false;
    EXPECT_EQ(next(), List(8, 0));
  }
}

TEST_F(WeightsTest, LoadNeverMakesGoodForHealth) {
  instances(2);
  candidates_[0].is_healthy = false;
  loads_[0].factor = 1;  // an agent-check's "up 100%"
  loads_[1].factor = 0.01;
  for (const size_t i : {0, 1}) ++loads_[i].answers;
  EXPECT_EQ(next(), (List{0, 16}));
}

TEST_F(WeightsTest, StaticWeightsAreAFactorOfWhatIsFree) {
  of({0.5, 0.5});
  candidates_[1].weight = 0.25;
  weights_ = {};
  EXPECT_EQ(next(), (List{16, 4}));
  vip_.scheduler = Scheduler::kStatic;
  EXPECT_EQ(next(), (List{4, 1}));
  vip_.scheduler = Scheduler::kEcmp;
  EXPECT_EQ(next(), (List{1, 1}));
}

TEST_F(WeightsTest, CapacityIsWhatAnAgentSaysElseWhatIsConfigured) {
  of({0.5, 0.5, 0.5});
  loads_[0].cores = 8;
  loads_[1].cores = 4;
  weights_ = {};
  EXPECT_EQ(next(), (List{16, 8, 12}));  // the third as the others' mean
  vip_.load = model::LoadSource::kPrometheus;
  candidates_[2].capacity = 2;
  weights_ = {};
  EXPECT_EQ(next(), (List{8, 8, 16}));
}

TEST_F(WeightsTest, OneNotHeardIsAsTheMeanOfTheOthers) {
  instances(3);
  EXPECT_EQ(next(), (List{16, 16, 16}));
  use(0, 0);
  use(1, 0.5);
  EXPECT_EQ(next(), (List{16, 8, 12}));
  EXPECT_EQ(last_[2].reason, Reason::kNotHeard);
  EXPECT_EQ(last_[2].utilisation, 0.25);
}

TEST_F(WeightsTest, AfterThreeMissedPollsTheWeightIsTheLast) {
  EXPECT_EQ(of({0, 0.5}), (List{16, 8}));
  loads_[1].missed = 2;  // its load stays, its weight goes on with the others'
  use(0, 0.5);
  EXPECT_EQ(next(), (List{16, 16}));
  loads_[1].missed = 3;
  use(0, 0);
  EXPECT_EQ(next(), (List{16, 16}));
  EXPECT_EQ(last_[1].reason, Reason::kLastHeard);
  loads_[0].missed = 10;
  EXPECT_EQ(next(), (List{16, 16}));
  use(1, 0.75);
  EXPECT_EQ(next(), (List{16, 16}));  // the one that is heard is the best
}

TEST_F(WeightsTest, AnAcceptQueueThatStandsTakesFromWhatIsFree) {
  of({0.1, 0.1});
  for (const size_t i : {0, 1}) loads_[i].cores = 2;
  weights_ = {};
  const auto poll = [&](uint32_t queue) {
    loads_[0].accept_queue = queue;
    use(0, 0.1);
    use(1, 0.1);
    return next()[0];
  };
  EXPECT_EQ(poll(0), 16u);
  EXPECT_EQ(poll(6), 16u);  // on its way in, perhaps
  EXPECT_EQ(poll(0), 16u);
  poll(6);
  EXPECT_EQ(poll(6), 4u);  // 1 / (1 + 6/2) of it is free, of the other 0.9
  poll(0);
  EXPECT_EQ(poll(0), 16u);
}

TEST_F(WeightsTest, SlowStartGrowsToTheWeight) {
  vip_.slow_start_ms = 10'000;
  for (const Scheduler scheduler :
       {Scheduler::kAwfd, Scheduler::kStatic, Scheduler::kEcmp, Scheduler::kLeastConnections}) {
    vip_.scheduler = scheduler;
    of({0.5, 0.5, 0.2});
    double former = 0;
    std::set<List> tables;
    for (Nanos up_for = 0; up_for <= 12 * kSecond; up_for += 100 * kMillisecond) {
      candidates_[2].up_for = up_for;
      const List weights = next();
      tables.insert(weights);
      EXPECT_GE(share(weights, 2), former) << up_for;
      former = share(weights, 2);
      if (up_for == 0) {
        EXPECT_LT(former, 0.1);
      }
    }
    EXPECT_LE(tables.size(), 16u);
    candidates_[2].up_for = std::numeric_limits<Nanos>::max();
    EXPECT_EQ(share(next(), 2), former);
  }
}

TEST_F(WeightsTest, LeastConnectionsGoesToThoseWithLeast) {
  vip_.scheduler = Scheduler::kLeastConnections;
  vip_.load = model::LoadSource::kNone;
  candidates_ = {
      {.id = 1, .connections = 100}, {.id = 2, .connections = 0}, {.id = 3, .connections = 5}};
  List weights = next();
  EXPECT_EQ(weights[0], 0u);
  EXPECT_GT(weights[1], weights[2]);
  candidates_[0].weight = 1000;
  weights = next();
  EXPECT_EQ(weights[0], 64u);
  for (Candidate& each : candidates_) each = {.id = each.id, .connections = 7};
  EXPECT_EQ(next(), (List{64, 64, 64}));
}

TEST_F(WeightsTest, AnAgentCheckChangesTheStaticWeight) {
  instances(2);
  loads_[0].factor = 1;
  loads_[1].factor = 0.25;
  for (const size_t i : {0, 1}) ++loads_[i].answers;
  EXPECT_EQ(next(), (List{16, 4}));
  vip_.scheduler = Scheduler::kStatic;
  EXPECT_EQ(next(), (List{4, 1}));
  vip_.scheduler = Scheduler::kEcmp;
  EXPECT_EQ(next(), (List{1, 1}));
}

TEST_F(WeightsTest, WithoutALoadSourceAllIsInProportion) {
  vip_.load = model::LoadSource::kNone;
  candidates_ = {{.id = 1, .weight = 100}, {.id = 2, .capacity = 2}, {.id = 3}};
  EXPECT_EQ(next(), (List{100, 2, 1}));
}

TEST_F(WeightsTest, ASteadyNoisyLoadChangesNoWeight) {
  std::mt19937_64 random(11);
  for (const double sigma : {0.005, 0.02, 0.05}) {
    std::normal_distribution<double> noise(0, sigma);
    of({0.3, 0.4, 0.5, 0.6, 0.3, 0.3, 0.02, 0.98});
    const double means[] = {0.3, 0.4, 0.5, 0.6, 0.3, 0.3, 0.02, 0.98};
    List former;
    int changes = 0;
    for (int poll = 0; poll < 1100; ++poll) {
      for (size_t i = 0; i < 8; ++i) use(i, std::clamp(means[i] + noise(random), 0.0, 1.0));
      const List weights = next();
      if (poll > 100 && weights != former) ++changes;
      former = weights;
    }
    EXPECT_EQ(changes, 0) << sigma;
    use(0, 0.9);
    next();
    use(0, 0.9);
    next();
    use(0, 0.9);
    EXPECT_LT(next()[0], former[0]) << sigma;
  }
}

TEST_F(WeightsTest, OneWhoseAgentForgetsItsFiguresIsNotHeard) {
  of({0.9, 0.1});
  loads_[0].utilisation.reset();
  ++loads_[0].answers;
  EXPECT_EQ(next()[0], 16u);
  EXPECT_EQ(last_[0].reason, Reason::kNotHeard);
}

}  // namespace
}  // namespace ballast::lb
