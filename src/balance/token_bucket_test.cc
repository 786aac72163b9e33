// SPDX-License-Identifier: Apache-2.0
#include "balance/token_bucket.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace ballast::balance {
namespace {

TEST(TokenBucket, ZeroRateIsUnlimited) {
  TokenBucket bucket(0);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(bucket.try_take(5));
  EXPECT_EQ(bucket.next(5), 5);
}

TEST(TokenBucket, BurstThenRate) {
  TokenBucket bucket(1000, 10);
  const Nanos start = 7 * kSecond;
  int granted = 0;
  for (int i = 0; i < 100; ++i) granted += bucket.try_take(start);
  EXPECT_EQ(granted, 10);
  granted = 0;
  for (Nanos t = start; t < start + 2 * kSecond; t += 100 * kMicrosecond) {
    granted += bucket.try_take(t);
  }
  EXPECT_NEAR(granted, 2000, 1);
}

TEST(TokenBucket, NextIsTheFirstTimeThatSucceeds) {
  for (const double rate : {0.5, 3.0, 1000.0, 333'333.0, 7e6, 3e8}) {
    TokenBucket bucket(rate, 1);
    Nanos now = 123'456'789'012'345;
    EXPECT_TRUE(bucket.try_take(now));
    for (int i = 0; i < 200; ++i) {
      const Nanos next = bucket.next(now);
      if (next > now + 5) {
        EXPECT_FALSE(bucket.try_take(next - 5)) << rate;
      }
      ASSERT_TRUE(bucket.try_take(next)) << rate;
      now = next;
    }
  }
}

TEST(TokenBucket, TimeGoingBackGivesNothing) {
  TokenBucket bucket(10, 1);
  EXPECT_TRUE(bucket.try_take(kSecond));
  EXPECT_FALSE(bucket.try_take(0));
  EXPECT_FALSE(bucket.try_take(kSecond));
}

TEST(TokenBucket, MoreThanTheBurstIsNeverGranted) {
  TokenBucket bucket(10, 4);
  EXPECT_FALSE(bucket.try_take(100 * kSecond, 5));
  EXPECT_TRUE(bucket.try_take(100 * kSecond, 4));
}

}  // namespace
}  // namespace ballast::balance
