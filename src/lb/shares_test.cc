// SPDX-License-Identifier: Apache-2.0
#include "lb/shares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "base/random.h"
#include "wire/lb.h"

namespace ballast::lb {
namespace {

using Weights = std::vector<uint32_t>;
using Shares = std::vector<double>;

TEST(WholeWeights, AreSmallWhereThatIsExact) {
  EXPECT_EQ(whole_weights(Shares{1, 1, 1}), (Weights{1, 1, 1}));
  EXPECT_EQ(whole_weights(Shares{2, 1, 0}), (Weights{2, 1, 0}));
  EXPECT_EQ(whole_weights(Shares{0.5, 1.5, 1}), (Weights{1, 3, 2}));
  EXPECT_EQ(whole_weights(Shares{100, 1}), (Weights{100, 1}));
  EXPECT_EQ(whole_weights(Shares{1, 1.0 / 3}), (Weights{3, 1}));
  EXPECT_EQ(whole_weights(Shares{0, 0}), (Weights{0, 0}));
  EXPECT_EQ(whole_weights(Shares{}), Weights{});
}

TEST(WholeWeights, AreInProportionElsewhere) {
  const Shares shares{std::sqrt(2), 1, M_PI, 1000};
  const Weights weights = whole_weights(shares);
  for (size_t i = 0; i < shares.size(); ++i)
    EXPECT_NEAR(weights[i], 65'535 * shares[i] / 1000, 0.5) << i;
  EXPECT_EQ(whole_weights(Shares{1e-9, 1})[0], 1u);
}

TEST(WholeWeights, AreInNoMoreClassesThanATableHas) {
  for (const double spread : {1.001, 10.0, 1000.0}) {
    Shares shares;
    for (int i = 0; i < 1000; ++i) shares.push_back(std::pow(spread, i / 999.0));
    const Weights weights = whole_weights(shares);
    EXPECT_LE(std::set(weights.begin(), weights.end()).size(), size_t{BL_MOST_CLASSES});
    for (size_t i = 0; i < shares.size(); ++i)
      EXPECT_NEAR(weights[i] / (65'535 * shares[i] / spread), 1, 0.06) << spread << " " << i;
  }
}

TEST(WithLeastShare, RaisesThoseBelowAndKeepsTheProportionOfTheOthers) {
  const uint64_t seed = system_seed();
  Random random(seed);
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random.next() % n); };
  for (int round = 0; round < 2000; ++round) {
    const size_t count = 1 + pick(40);
    const double least = (pick(101)) / 100.0;
    Weights weights;
    Shares fair;
    for (size_t i = 0; i < count; ++i) {
      weights.push_back(pick(4) == 0 ? 0 : pick(17));
      fair.push_back(0.1 + pick(10));
    }
    weights[0] = 16;
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const double all = std::accumulate(fair.begin(), fair.end(), 0.0);
    const Shares shares = with_least_share(weights, fair, least);
    if (shares.empty()) {
      for (size_t i = 0; i < count; ++i)
        EXPECT_GE(weights[i] / sum, least * fair[i] / all - 1e-9) << seed;
      continue;
    }
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-9) << seed;
    double scale = 0;  // of those that were not raised
    for (size_t i = 0; i < count; ++i) {
      const double floor = least * fair[i] / all;
      ASSERT_GE(shares[i], floor - 1e-9) << seed;
      if (shares[i] <= floor + 1e-9) continue;
      if (scale == 0) scale = shares[i] / weights[i];
      EXPECT_NEAR(shares[i] / weights[i], scale, 1e-9) << seed;
      EXPECT_LE(shares[i], weights[i] / sum + 1e-9) << seed;
    }
  }
}

TEST(LeastFirst, IsWhatSendingEachToTheLeastLoadedGives) {
  const std::vector<uint64_t> open{10, 0, 4, 50};
  const Shares fair{1, 1, 2, 0};
  const Shares get = least_first(open, fair, 10);
  std::vector<double> now{10, 0, 4, 50};
  for (int i = 0; i < 10'000; ++i) {  // in thousandths
    size_t least = 0;
    for (size_t j = 0; j < 3; ++j)
      if (now[j] / fair[j] < now[least] / fair[least]) least = j;
    now[least] += 0.001;
  }
  for (size_t i = 0; i < open.size(); ++i)
    EXPECT_NEAR(get[i], now[i] - static_cast<double>(open[i]), 0.01) << i;
  EXPECT_EQ(get[3], 0);
}

}  // namespace
}  // namespace ballast::lb
