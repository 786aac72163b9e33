// SPDX-License-Identifier: Apache-2.0
#include "lb/steady.h"

#include <gtest/gtest.h>

#include <random>

namespace ballast::lb {
namespace {

constexpr double kStep = 1.0 / 16;

TEST(Steady, WithoutNoiseAStepIsFollowedAtOnceAndLessThanAQuarterNever) {
  Steady steady;
  EXPECT_EQ(steady.take(0.5, kStep), 0.5);
  EXPECT_EQ(steady.take(0.5 + kStep, kStep), 0.5 + kStep);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(steady.take(0.5 + kStep * 1.24, kStep), 0.5 + kStep) << i;
  Steady other;
  other.take(0.5, kStep);
  int i = 0;
  while (other.take(0.5 + kStep * 0.5, kStep) == 0.5) ASSERT_LT(++i, 10);
}

TEST(Steady, NoiseMovesNothingAndATrueMoveIsSeenThroughIt) {
  for (const double sigma : {0.005, 0.02, 0.05}) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> noise(0, sigma);
    Steady steady;
    for (int i = 0; i < 100; ++i) steady.take(0.5 + noise(random), kStep);
    const double held = steady.held();
    EXPECT_NEAR(held, 0.5, sigma + kStep / 4);
    for (int i = 0; i < 3000; ++i) ASSERT_EQ(steady.take(0.5 + noise(random), kStep), held);
    int took = 0;
    while (std::abs(steady.take(0.9 + noise(random), kStep) - 0.9) > 0.1) ASSERT_LT(++took, 10);
  }
}

TEST(Steady, ASlowDriftIsFollowed) {
  Steady steady;
  for (int i = 0; i <= 1000; ++i) {
    const double figure = i / 1000.0;
    EXPECT_NEAR(steady.take(figure, kStep), figure, 2 * kStep);
  }
}

}  // namespace
}  // namespace ballast::lb
