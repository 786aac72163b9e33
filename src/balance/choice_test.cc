// SPDX-License-Identifier: Apache-2.0
#include "balance/choice.h"

#include <gtest/gtest.h>

namespace ballast::balance {
namespace {

TEST(LoadTable, TakesTheSmallerEstimate) {
  LoadTable table(4);
  Random random(1);
  table.report(1, 100, 0);
  table.report(2, 90, 0);
  const uint16_t candidates[] = {1, 2};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(table.choose(candidates, 0, random), 1U);
  for (int i = 0; i < 11; ++i) table.sent(2);
  EXPECT_EQ(table.choose(candidates, 0, random), 0U);
  table.report(2, 90, 0);
  EXPECT_EQ(table.choose(candidates, 0, random), 1U);
  table.report(2, 90, 0, 20);
  EXPECT_EQ(table.choose(candidates, 0, random), 0U);
}

TEST(LoadTable, TiesAreSplitEvenly) {
  LoadTable table(4);
  Random random(7);
  const uint16_t candidates[] = {0, 1, 2, 3};
  int taken[4] = {};
  for (int i = 0; i < 40'000; ++i) ++taken[table.choose(candidates, 0, random)];
  for (const int count : taken) EXPECT_NEAR(count, 10'000, 500);
}

TEST(LoadTable, ALoadNotRefreshedAges) {
  LoadTable table(1, {.half_life = kSecond});
  table.report(0, 1000, 5 * kSecond);
  EXPECT_DOUBLE_EQ(table.estimate(0, 5 * kSecond), 1000);
  EXPECT_DOUBLE_EQ(table.estimate(0, 6 * kSecond), 500);
  EXPECT_DOUBLE_EQ(table.estimate(0, 8 * kSecond), 125);
  EXPECT_LT(table.estimate(0, 100 * kSecond), 1e-9);
  EXPECT_DOUBLE_EQ(table.estimate(0, 4 * kSecond), 1000);
  double last = 1000;
  for (Nanos t = 5 * kSecond; t < 10 * kSecond; t += 10 * kMillisecond) {
    EXPECT_LE(table.estimate(0, t), last);
    last = table.estimate(0, t);
  }
}

TEST(LoadTable, Switches) {
  LoadTable table(1, {.ageing = false, .own_sent = false});
  table.report(0, 10, 0);
  table.sent(0);
  EXPECT_DOUBLE_EQ(table.estimate(0, 100 * kSecond), 10);
}

TEST(LoadTable, ForgetStartsAnew) {
  LoadTable table(1);
  table.report(0, 10, 0);
  table.sent(0);
  table.forget(0);
  EXPECT_DOUBLE_EQ(table.estimate(0, 0), 0);
}

TEST(LoadWindow, CountsTheLastWindow) {
  LoadWindow window(kSecond);
  const Nanos start = 1'000 * kSecond + 12'345;
  // 1000 requests a second.
  for (int i = 0; i < 3000; ++i) window.count(start + i * kMillisecond);
  const Nanos end = start + 2999 * kMillisecond;
  EXPECT_NEAR(window.load(end), 1000, 2);
  EXPECT_NEAR(window.load(end + 500 * kMillisecond), 500, 3);
  EXPECT_NEAR(window.load(end + 950 * kMillisecond), 50, 3);
  EXPECT_EQ(window.load(end + 1100 * kMillisecond), 0U);
}

TEST(LoadWindow, ALongPauseClearsIt) {
  LoadWindow window(kSecond);
  window.count(0, 1'000'000);
  EXPECT_EQ(window.load(0), 1'000'000U);
  EXPECT_EQ(window.load(int64_t{1} << 60), 0U);
  window.count(int64_t{1} << 60, 5);
  EXPECT_EQ(window.load(int64_t{1} << 60), 5U);
}

}  // namespace
}  // namespace ballast::balance
