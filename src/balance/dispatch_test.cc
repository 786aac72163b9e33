// SPDX-License-Identifier: Apache-2.0
// What a new flow's instance is chosen by: AWFD's weights, the dispatch table, connection counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "balance/awfd.h"
#include "balance/connection_counts.h"
#include "balance/dispatch_table.h"
#include "base/random.h"

namespace ballast::balance {
namespace {

constexpr uint64_t kSeed = 180608455;
constexpr double kInfinite = std::numeric_limits<double>::infinity();
const double kNotANumber = std::numeric_limits<double>::quiet_NaN();

std::vector<uint32_t> weights_of(const std::vector<double>& available, uint32_t m) {
  const auto weights = awfd_weights(available, m);
  EXPECT_TRUE(weights) << weights.error().message;
  return *weights;
}

std::vector<double> random_available(size_t count, Random& random) {
  std::vector<double> available(count);
  for (double& a : available) a = random.unit() * 1e9;
  return available;
}

// Pearson's statistic of the flows that `choose(i)` sends to each instance, brought to a standard
// normal one (Wilson and Hilferty); an instance that is due none and gets one makes it infinite.
template <typename Choose>
double deviation(const std::vector<uint32_t>& weights, size_t flows, const Choose& choose) {
  std::vector<double> seen(weights.size());
  for (size_t i = 0; i < flows; ++i) ++seen[choose(i)];
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double chi = 0;
  double freedom = -1;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double due = static_cast<double>(flows) * weights[i] / sum;
    if (due == 0 && seen[i] > 0) return kInfinite;
    if (due == 0) continue;
    chi += (seen[i] - due) * (seen[i] - due) / due;
    ++freedom;
  }
  if (freedom <= 0) return 0;
  const double spread = 2 / (9 * freedom);
  return (std::cbrt(chi / freedom) - (1 - spread)) / std::sqrt(spread);
}

TEST(AvailableCapacity, IsWhatIsNotUsed) {
  EXPECT_DOUBLE_EQ(*available_capacity(0.75, 8), 2);
  EXPECT_DOUBLE_EQ(*available_capacity(0, 8), 8);
  EXPECT_DOUBLE_EQ(*available_capacity(1, 8), 0);
  EXPECT_DOUBLE_EQ(*available_capacity(1.3, 8), 0);  // beyond the nominal capacity
  EXPECT_DOUBLE_EQ(*available_capacity(0.5, 0), 0);
  for (const double wrong : {-0.1, kNotANumber, kInfinite, -kInfinite}) {
    EXPECT_FALSE(available_capacity(wrong, 8)) << wrong;
    EXPECT_FALSE(available_capacity(0.5, wrong)) << wrong;
  }
}

TEST(AwfdWeights, AreTheFloorOfTheShareOfTheLargest) {
  EXPECT_EQ(weights_of({10, 5, 2.4, 2.5, 0}, 4), (std::vector<uint32_t>{4, 2, 0, 1, 0}));
  EXPECT_EQ(weights_of({3, 3, 3}, 16), (std::vector<uint32_t>{16, 16, 16}));
}

TEST(AwfdWeights, OfZeroIsEcmpAndOfOneOnlyTheLargest) {
  EXPECT_EQ(weights_of({10, 0, 3}, 0), (std::vector<uint32_t>{1, 1, 1}));
  EXPECT_EQ(weights_of({10, 0, 9.99, 10}, 1), (std::vector<uint32_t>{1, 0, 0, 1}));
}

TEST(AwfdWeights, AreEqualWhereNothingIsFree) {
  for (const uint32_t m : {0, 1, 16})
    EXPECT_EQ(weights_of({0, 0, 0}, m), (std::vector<uint32_t>{1, 1, 1})) << m;
}

TEST(AwfdWeights, NeverAllFallToZeroAndTheLargestHasM) {
  Random random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    const auto m = static_cast<uint32_t>(1 + random.below(100));
    std::vector<double> available = random_available(100 + random.below(200), random);
    // Many small ones beside few large.
    for (double& a : available) a = std::pow(a, static_cast<double>(1 + round % 8));
    const auto weights = weights_of(available, m);
    const size_t most = static_cast<size_t>(std::max_element(available.begin(), available.end()) -
                                            available.begin());
    ASSERT_EQ(weights[most], m) << "round " << round;
    ASSERT_EQ(*std::max_element(weights.begin(), weights.end()), m) << "round " << round;
  }
}

TEST(AwfdWeights, DoNotDependOnTheUnit) {
  Random random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    const auto m = static_cast<uint32_t>(1 + random.below(64));
    std::vector<double> available = random_available(1 + random.below(150), random);
    // Exact steps in every second round, where rounding would decide.
    if (round % 2 == 0) {
      for (double& a : available) a = static_cast<double>(random.below(m + 1));
      available[0] = m;
      const std::vector<uint32_t> exact(available.begin(), available.end());
      ASSERT_EQ(weights_of(available, m), exact) << "round " << round;
    }
    const double unit = std::exp((random.unit() - 0.5) * 100);
    std::vector<double> scaled = available;
    for (double& a : scaled) a *= unit;
    ASSERT_EQ(weights_of(available, m), weights_of(scaled, m)) << "round " << round;
  }
}

TEST(AwfdWeights, RefuseWhatIsNotAnAmount) {
  for (const double wrong : {-1.0, kNotANumber, kInfinite}) {
    const auto weights = awfd_weights(std::vector<double>{1, wrong}, 16);
    ASSERT_FALSE(weights);
    EXPECT_EQ(weights.error().code, ErrorCode::kInvalid);
  }
  EXPECT_FALSE(awfd_weights({}, 16));
  EXPECT_FALSE(awfd_weights(std::vector<double>{1}, DispatchTable::kMostWeight + 1));
  EXPECT_FALSE(awfd_weights(std::vector<double>(DispatchTable::kMostInstances + 1, 1.0), 1));
}

TEST(DispatchTable, ChoosesEachInstanceByItsWeight) {
  Random random(kSeed);
  for (const uint32_t m : {0, 1, 4, 16, 1000}) {
    for (const size_t count : {1, 2, 7, 150}) {
      const auto weights = weights_of(random_available(count, random), m);
      const DispatchTable table(weights);
      EXPECT_LT(deviation(weights, 1'000'000,
                          [&](size_t flow) { return table.choose(flow_hash(flow, kSeed)); }),
                4)
          << "m " << m << ", " << count << " instances";
    }
  }
}

TEST(DispatchTable, WithOneHashForBothStagesWouldNot) {
  // Why there are two: the draw that leads into a class says where in its range it lay.
  const std::vector<uint32_t> weights{4, 4, 4, 4, 1, 1, 1, 1};
  const DispatchTable table(weights);
  EXPECT_GT(deviation(weights, 100'000,
                      [&](size_t flow) {
                        const uint32_t hash = flow_hash(flow, kSeed).of_class;
                        return table.choose({hash, hash});
                      }),
            10);
}

TEST(DispatchTable, TheEndsOfTheRangesAreRight) {
  // Classes {1}, {0, 2}: draws 0 ... 2 and 3 ... 4 of 5.
  const DispatchTable table(std::vector<uint32_t>{1, 3, 1, 0});
  ASSERT_EQ(table.total(), 5U);
  ASSERT_EQ(table.classes().size(), 2U);
  const auto hash_of = [](uint64_t draw) {
    return static_cast<uint32_t>(((draw << 32) + 4) / 5);  // the least hash with this draw
  };
  EXPECT_EQ(table.choose({0, UINT32_MAX}), 1);
  EXPECT_EQ(table.choose({hash_of(3) - 1, 0}), 1);
  EXPECT_EQ(table.choose({hash_of(3), 0}), 0);
  EXPECT_EQ(table.choose({hash_of(3), UINT32_MAX}), 2);
  EXPECT_EQ(table.choose({UINT32_MAX, UINT32_MAX}), 2);
}

TEST(DispatchTable, TakesTheLargestSumOfWeights) {
  const std::vector<uint32_t> weights(DispatchTable::kMostInstances, DispatchTable::kMostWeight);
  const DispatchTable table(weights);
  EXPECT_EQ(table.total(), 4'294'901'760U);
  EXPECT_EQ(table.choose({UINT32_MAX, UINT32_MAX}), 65'535);
  EXPECT_EQ(table.choose({0, 0}), 0);
}

TEST(ConnectionCounts, LeastTakesTheLeastByWeightAndEqualOnesEvenly) {
  ConnectionCounts counts(std::vector<uint32_t>{1, 1, 4});
  Random random(kSeed);
  for (int i = 0; i < 600; ++i) counts.opened(counts.least(random));
  EXPECT_NEAR(counts.open(0), 100, 1);
  EXPECT_NEAR(counts.open(1), 100, 1);
  EXPECT_NEAR(counts.open(2), 400, 2);
  for (int i = 0; i < 50; ++i) counts.closed(1);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(counts.least(random), 1);
    counts.opened(1);
  }
  const ConnectionCounts idle(std::vector<uint32_t>{2, 2, 2, 2});
  EXPECT_LT(deviation({1, 1, 1, 1}, 40'000, [&](size_t) { return idle.least(random); }), 4);
}

TEST(ConnectionCounts, OfTwoDifferentOnesTheLessLoaded) {
  ConnectionCounts counts(std::vector<uint32_t>(5, 1));
  const auto choose = [&](size_t flow) { return counts.of_two(flow_hash(flow, kSeed)); };
  EXPECT_LT(deviation({1, 1, 1, 1, 1}, 100'000, choose), 4);
  for (int i = 0; i < 100; ++i) counts.opened(3);
  // Never the fullest, as the other of the pair is another instance.
  EXPECT_LT(deviation({1, 1, 1, 0, 1}, 100'000, choose), 4);
  EXPECT_EQ(ConnectionCounts(std::vector<uint32_t>{7}).of_two({UINT32_MAX, UINT32_MAX}), 0);
}

TEST(ConnectionCounts, TwoChoicesKeepTheFullestLower) {
  constexpr size_t kInstances = 100;
  const std::vector<uint32_t> equal(kInstances, 1);
  ConnectionCounts counts(equal);
  std::vector<int> hashed(kInstances);
  const DispatchTable table(equal);
  uint32_t fullest = 0;
  for (size_t flow = 0; flow < 100 * kInstances; ++flow) {
    const uint16_t instance = counts.of_two(flow_hash(flow, kSeed));
    counts.opened(instance);
    fullest = std::max(fullest, counts.open(instance));
    ++hashed[table.choose(flow_hash(flow, kSeed))];
  }
  EXPECT_LE(fullest, 104U);
  EXPECT_GE(*std::max_element(hashed.begin(), hashed.end()), 115);
}

}  // namespace
}  // namespace ballast::balance
