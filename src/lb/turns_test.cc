// SPDX-License-Identifier: Apache-2.0
#include "lb/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace ballast::lb {
namespace {

constexpr Nanos kInterval = 100 * kMillisecond;

TEST(Turns, EachHasOneEveryInterval) {
  Turns turns;
  for (uint32_t id = 0; id < 7; ++id) turns.add(id, kInterval, 5 * kSecond);
  std::vector<int> counts(7, 0);
  std::vector<Nanos> last(7, 0);
  for (Nanos now = 5 * kSecond; now < 7 * kSecond; now += kMillisecond) {
    while (const auto turn = turns.take(now)) {
      ++counts[turn->id];
      EXPECT_LT(now - turn->due, kMillisecond);
      if (last[turn->id] != 0) {
        EXPECT_EQ(turn->due - last[turn->id], kInterval);
      }
      last[turn->id] = turn->due;
    }
  }
  for (const int count : counts) EXPECT_EQ(count, 20);
}

TEST(Turns, AreSpreadHoweverManyComeAndGo) {
  Turns turns;
  for (uint32_t id = 0; id < 1000; ++id) turns.add(id, kInterval, kSecond);
  for (uint32_t id = 500; id < 1000; ++id) turns.remove(id);
  for (uint32_t id = 1000; id < 1100; ++id) turns.add(id, kInterval, kSecond);
  std::vector<Nanos> dues;
  while (const auto turn = turns.take(kSecond + kInterval - 1)) dues.push_back(turn->due);
  ASSERT_EQ(dues.size(), 600u);
  for (int tenth = 0; tenth < 10; ++tenth) {
    const auto in_it = std::ranges::count_if(
        dues, [&](Nanos due) { return (due - kSecond) / (kInterval / 10) == tenth; });
    EXPECT_GT(in_it, 50) << tenth;
    EXPECT_LT(in_it, 70) << tenth;
  }
}

TEST(Turns, AfterAPauseNobodyHasTwoAtOnce) {
  Turns turns;
  for (uint32_t id = 0; id < 10; ++id) turns.add(id, kInterval, 0);
  int count = 0;
  while (turns.take(10 * kSecond)) ++count;
  EXPECT_EQ(count, 10);
  while (turns.take(10 * kSecond + kInterval)) ++count;
  EXPECT_EQ(count, 20);
}

TEST(Turns, TheFirstMayBeAtOnceAndOneMayBeHurried) {
  Turns turns;
  turns.add(1, kInterval, kSecond, true);
  EXPECT_EQ(turns.take(kSecond)->due, kSecond);
  const Nanos second = *turns.next_due();
  EXPECT_GT(second, kSecond + kInterval / 2);
  EXPECT_LE(second, kSecond + kInterval * 3 / 2 + 1);
  turns.hurry(1, kSecond + 1);
  EXPECT_EQ(turns.take(kSecond + 1)->id, 1u);
  EXPECT_FALSE(turns.take(kSecond + 2));
  turns.remove(1);
  EXPECT_FALSE(turns.next_due());
}

}  // namespace
}  // namespace ballast::lb
