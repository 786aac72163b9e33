// SPDX-License-Identifier: Apache-2.0
#include "sim/flow_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ballast::sim {
namespace {

constexpr uint64_t kSeed = 1806;

double mean_of(const FlowSizes& sizes, int samples) {
  Random random(kSeed);
  double sum = 0;
  for (int i = 0; i < samples; ++i) {
    const double size = sizes.sample(random);
    EXPECT_GT(size, 0) << sizes.name();
    sum += size;
  }
  return sum / samples;
}

TEST(FlowSizes, EveryLawHasTheMeanThatWasAskedFor) {
  for (const std::string_view law : FlowSizes::laws()) {
    const auto sizes = FlowSizes::of_law(law, 5e5);
    ASSERT_TRUE(sizes) << law;
    EXPECT_EQ(sizes->mean(), 5e5) << law;
    EXPECT_EQ(sizes->name(), law);
    // Deviations of a million samples' mean, heavy tails included.
    EXPECT_NEAR(mean_of(*sizes, 1'000'000), 5e5, 0.03 * 5e5) << law;
    Random random(kSeed);
    int larger = 0;
    int near = 0;
    for (int i = 0; i < 100'000; ++i) {
      const double size = sizes->sample(random);
      larger += size > sizes->largest() ? 1 : 0;
      near += size > sizes->largest() / 4 ? 1 : 0;
    }
    EXPECT_LT(larger, 140) << law;
    EXPECT_GT(near, 0) << law;
  }
}

TEST(FlowSizes, ShapesAreTheLaws) {
  Random random(kSeed);
  const auto share_above = [&](const char* law, double size) {
    const FlowSizes sizes = *FlowSizes::of_law(law, 1);
    int above = 0;
    for (int i = 0; i < 200'000; ++i) above += sizes.sample(random) > size ? 1 : 0;
    return above / 200'000.0;
  };
  EXPECT_EQ(share_above("fixed", 1), 0);
  EXPECT_NEAR(share_above("exponential", 2), std::exp(-2), 0.003);
  // ln 1 is sigma / 2 standard deviations above the median's.
  EXPECT_NEAR(share_above("lognormal", 1), std::erfc(0.75 / std::sqrt(2)) / 2, 0.004);
  const FlowSizes pareto = *FlowSizes::of_law("pareto", 1);
  double least = 1;
  double most = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const double size = pareto.sample(random);
    least = std::min(least, size);
    most = std::max(most, size);
  }
  EXPECT_NEAR(share_above("pareto", 10 * least), std::pow(10, -1.2), 0.003);
  EXPECT_LE(most, 1000 * least * 1.0001);
  EXPECT_GT(most, 500 * least);
}

TEST(FlowSizes, UnknownLawsAndMeansAreRefused) {
  EXPECT_NE(FlowSizes::of_law("even", 1).error().message.find("fixed, exponential"),
            std::string::npos);
  for (const double mean : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_FALSE(FlowSizes::of_law("fixed", mean)) << mean;
}

TEST(FlowSizes, AListIsDrawnFromEvenly) {
  const auto sizes = FlowSizes::parse("# bytes\n100\n\n 200 \r\n600");
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_DOUBLE_EQ(sizes->mean(), 300);
  EXPECT_NEAR(mean_of(*sizes, 100'000), 300, 3);
  EXPECT_NEAR(mean_of(sizes->with_mean(3e6), 100'000), 3e6, 3e4);
}

TEST(FlowSizes, ACurveIsStraightBetweenItsPoints) {
  const auto sizes = FlowSizes::parse("10 0.5\n20,0.75\n100\t1\n");
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_DOUBLE_EQ(sizes->mean(), 0.5 * 10 + 0.25 * 15 + 0.25 * 60);
  EXPECT_NEAR(mean_of(*sizes, 200'000), sizes->mean(), 0.2);
  Random random(kSeed);
  int at_least = 0;
  int up_to_60 = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double size = sizes->sample(random);
    EXPECT_GE(size, 10);
    EXPECT_LE(size, 100);
    at_least += size == 10 ? 1 : 0;
    up_to_60 += size <= 60 ? 1 : 0;
  }
  EXPECT_NEAR(at_least, 50'000, 700);
  EXPECT_NEAR(up_to_60, 87'500, 500);
}

TEST(FlowSizes, BadFilesAreRefusedWithTheirLine) {
  const auto message = [](const char* text) {
    const auto sizes = FlowSizes::parse(text);
    return sizes ? std::string("accepted") : sizes.error().message;
  };
  EXPECT_EQ(message(""), "holds no flow's size");
  EXPECT_EQ(message("# only words\n\n"), "holds no flow's size");
  EXPECT_TRUE(message("5\n-1\n").starts_with("line 2: ")) << message("5\n-1\n");
  for (const char* text : {"0", "x", "1e400", "nan", "5 0.5\n6", "5\n6 1", "5 0.5\n4 1",
                           "5 0.5\n6 0.4", "5 1.5", "5 x", "5 0.5 7"})
    EXPECT_TRUE(message(text).starts_with("line ")) << text << ": " << message(text);
  EXPECT_NE(message("5 0.5\n6 0.9").find("not 1"), std::string::npos);
}

}  // namespace
}  // namespace ballast::sim
