// SPDX-License-Identifier: Apache-2.0
#include "base/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace ballast {
namespace {

TEST(Histogram, Empty) {
  const Histogram h;
  EXPECT_EQ(h.count(), 0U);
  EXPECT_EQ(h.quantile(0.5), 0);
  EXPECT_EQ(h.max(), 0);
  EXPECT_EQ(h.min(), 0);
  EXPECT_EQ(h.mean(), 0);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram h;
  for (int i = 0; i < 256; ++i) h.record(i);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(h.quantile((i + 1) / 256.0), i);
  EXPECT_DOUBLE_EQ(h.mean(), 127.5);
}

TEST(Histogram, ExtremeValues) {
  Histogram h;
  h.record(-5);
  h.record(INT64_MIN);
  h.record(INT64_MAX);
  h.record(INT64_MAX - 1, 3);
  h.record(7, 0);
  EXPECT_EQ(h.count(), 6U);
  EXPECT_EQ(h.min(), 0);
  EXPECT_EQ(h.max(), INT64_MAX);
  EXPECT_EQ(h.quantile(0), 0);
  EXPECT_EQ(h.quantile(1), INT64_MAX);
  EXPECT_EQ(h.quantile(-3), 0);
  EXPECT_EQ(h.quantile(7), INT64_MAX);
  EXPECT_NEAR(h.mean(), 4.0 / 6 * 0x1p63, 0x1p10);
  Histogram full;
  full.record(1, UINT64_MAX - 1);
  full.record(100);
  EXPECT_EQ(full.quantile(0.999999999), 1);
  EXPECT_EQ(full.quantile(1), 100);
}

// Every value is found again within 1/128, over all magnitudes and at each octave's edges.
TEST(Histogram, RelativeError) {
  Random random(3);
  for (int bit = 0; bit < 63; ++bit) {
    for (int i = 0; i < 200; ++i) {
      const int64_t base = int64_t{1} << bit;
      int64_t value = base + static_cast<int64_t>(random.below(static_cast<uint64_t>(base)));
      if (i == 0) value = base;
      if (i == 1) value = base - 1;
      if (i == 2) value = base + (base - 1);
      Histogram h;
      h.record(value);
      h.record(INT64_MAX);
      const int64_t found = h.quantile(0.5);
      ASSERT_GE(found, value);
      ASSERT_LE(found - value, value / 128) << value;
    }
  }
}

TEST(Histogram, QuantilesAndMergeAgreeWithSorting) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Histogram parts[3];
    std::vector<int64_t> values;
    for (int i = 0; i < 20'000; ++i) {
      const auto value = static_cast<int64_t>(std::exp(random.unit() * 25));
      values.push_back(value);
      parts[i % 3].record(value);
    }
    std::sort(values.begin(), values.end());
    Histogram all;
    for (const Histogram& part : parts) all.merge(part);
    ASSERT_EQ(all.count(), values.size());
    EXPECT_EQ(all.max(), values.back());
    EXPECT_EQ(all.min(), values.front());
    for (const double q : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
      const auto rank = static_cast<size_t>(std::ceil(q * 20'000));
      const int64_t exact = values[rank == 0 ? 0 : rank - 1];
      EXPECT_GE(all.quantile(q), exact);
      EXPECT_LE(all.quantile(q) - exact, exact / 128);
    }
    all.clear();
    EXPECT_EQ(all.count(), 0U);
  }
}

TEST(Histogram, CountAtMostGrowsToTheWhole) {
  Histogram histogram;
  EXPECT_EQ(histogram.count_at_most(1000), 0U);
  uint64_t exact = 0;
  for (int64_t value = 0; value < 1'000'000; value += 7) {
    histogram.record(value);
    if (value <= 250'000) ++exact;
  }
  EXPECT_EQ(histogram.count_at_most(-1), 0U);
  EXPECT_EQ(histogram.count_at_most(0), 1U);
  EXPECT_EQ(histogram.count_at_most(69), 10U);
  EXPECT_GE(histogram.count_at_most(250'000), exact);
  EXPECT_LE(histogram.count_at_most(250'000), exact + exact / 128 + 1);
  EXPECT_EQ(histogram.count_at_most(1'000'000), histogram.count());
  EXPECT_DOUBLE_EQ(histogram.sum(), histogram.mean() * static_cast<double>(histogram.count()));
}

}  // namespace
}  // namespace ballast
