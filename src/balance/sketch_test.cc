// SPDX-License-Identifier: Apache-2.0
#include "balance/sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_map>

#include "balance/space_saving.h"
#include "balance/zipf.h"

namespace ballast::balance {
namespace {

TEST(Sketch, NeverBelowTheTruthAndSeldomFarAbove) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Zipf zipf(100'000, 0.99);
    Sketch sketch(4096, seed);
    std::unordered_map<uint64_t, uint32_t> truth;
    uint64_t total = 0;
    for (int i = 0; i < 200'000; ++i) {
      const uint64_t key = mix(zipf.sample(random), 77);
      const auto weight = static_cast<uint32_t>(1 + random.below(3));
      truth[key] += weight;
      total += weight;
      const uint32_t returned = sketch.add(key, weight);
      if (i % 1000 == 0) {
        ASSERT_EQ(returned, sketch.estimate(key));
      }
    }
    size_t far = 0;
    for (const auto& [key, count] : truth) {
      ASSERT_GE(sketch.estimate(key), count);
      far += sketch.estimate(key) > count + 2.72 / 4096 * static_cast<double>(total);
    }
    EXPECT_LT(static_cast<double>(far), 0.0183 * static_cast<double>(truth.size()));
  }
}

TEST(Sketch, HalvesRaisesAndSaturates) {
  Sketch sketch;
  EXPECT_EQ(sketch.estimate(9), 0U);
  EXPECT_EQ(sketch.add(9, 101), 101U);
  sketch.halve();
  EXPECT_EQ(sketch.estimate(9), 50U);
  sketch.raise(9, 10);
  EXPECT_EQ(sketch.estimate(9), 50U);
  sketch.raise(9, 80);
  EXPECT_EQ(sketch.estimate(9), 80U);
  EXPECT_EQ(sketch.add(9, UINT32_MAX), UINT32_MAX);
  EXPECT_EQ(sketch.add(9), UINT32_MAX);
}

TEST(SpaceSaving, BoundsHoldAndHeavyKeysAreKept) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Zipf zipf(50'000, 0.99);
    SpaceSaving summary(200);
    std::unordered_map<uint64_t, uint64_t> truth;
    for (int i = 0; i < 100'000; ++i) {
      const uint64_t rank = zipf.sample(random);
      const uint64_t weight = 1 + random.below(4);
      truth[rank] += weight;
      summary.add(rank, weight);
    }
    ASSERT_EQ(summary.size(), 200U);
    const auto items = summary.top(1000);
    ASSERT_EQ(items.size(), 200U);
    uint64_t counted = 0;
    std::unordered_map<uint64_t, bool> kept;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) {
        ASSERT_LE(items[i].count, items[i - 1].count);
      }
      ASSERT_GE(items[i].count, truth[items[i].key]);
      ASSERT_LE(items[i].count - items[i].error, truth[items[i].key]);
      counted += items[i].count;
      kept[items[i].key] = true;
    }
    EXPECT_EQ(counted, summary.total());
    for (const auto& [key, count] : truth) {
      if (count > summary.total() / 200) {
        EXPECT_TRUE(kept[key]);
      }
    }
    EXPECT_EQ(items[0].key, 0U);
    EXPECT_EQ(summary.top(3).size(), 3U);
  }
}

TEST(SpaceSaving, Halving) {
  SpaceSaving summary(4);
  summary.add(1, 8);
  summary.add(2, 1);
  summary.add(3, 4);
  summary.halve();
  ASSERT_EQ(summary.size(), 2U);
  EXPECT_EQ(summary.top(1)[0].key, 1U);
  EXPECT_EQ(summary.top(1)[0].count, 4U);
  summary.add(3, 10);
  EXPECT_EQ(summary.top(1)[0].count, 12U);
}

}  // namespace
}  // namespace ballast::balance
