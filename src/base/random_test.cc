// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <gtest/gtest.h>

namespace ballast {
namespace {

TEST(Random, BelowStaysInRangeAndReachesEveryValue) {
  Random random(1);
  int seen[7] = {};
  for (int i = 0; i < 7000; ++i) ++seen[random.below(7)];
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
}

TEST(Random, SameSeedSameSequence) {
  Random a(42);
  Random b(42);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next(), b.next());
}

TEST(Random, SystemSeedsDiffer) { EXPECT_NE(system_seed(), system_seed()); }

}  // namespace
}  // namespace ballast
