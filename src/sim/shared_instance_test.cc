// SPDX-License-Identifier: Apache-2.0
#include "sim/shared_instance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "sim/event_times.h"

namespace ballast::sim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

TEST(SharedInstance, FlowsShareEvenlyUpToTheirOwnLimit) {
  SharedInstance instance(10, 4, 100);
  EXPECT_EQ(instance.next_end(), kNever);
  ASSERT_TRUE(instance.offer(8, 1, 0));
  EXPECT_DOUBLE_EQ(instance.next_end(), 2);  // 4 a second, though 10 are there
  ASSERT_TRUE(instance.offer(100, 2, 0));
  ASSERT_TRUE(instance.offer(100, 3, 0));
  ASSERT_TRUE(instance.offer(100, 4, 0));
  EXPECT_DOUBLE_EQ(instance.flow_rate(), 2.5);
  EXPECT_DOUBLE_EQ(instance.next_end(), 3.2);
  const SharedInstance::Flow ended = instance.end_next(instance.next_end());
  EXPECT_EQ(ended.tag, 1U);
  EXPECT_EQ(ended.arrived, 0);
  EXPECT_DOUBLE_EQ(instance.next_end(), 3.2 + 92 / (10.0 / 3));
  EXPECT_DOUBLE_EQ(instance.served(), 32);
  EXPECT_DOUBLE_EQ(instance.unfinished(), 276);
}

TEST(SharedInstance, OtherLoadComesFirst) {
  SharedInstance instance(10, 4, 100);
  ASSERT_TRUE(instance.offer(12, 0, 0));
  instance.set_background(0.9, 1);  // after 4 of 12
  EXPECT_DOUBLE_EQ(instance.next_end(), 9);
  instance.set_background(1, 2);
  EXPECT_EQ(instance.next_end(), kNever);
  instance.set_background(0, 4);
  EXPECT_DOUBLE_EQ(instance.next_end(), 4 + 7.0 / 4);
  EXPECT_DOUBLE_EQ(instance.served(), 5);
  EXPECT_DOUBLE_EQ(instance.used(), 5 + 9 + 20);
  EXPECT_DOUBLE_EQ(instance.offerable(), 10 + 1);
}

TEST(SharedInstance, RefusesBeyondItsLimit) {
  SharedInstance instance(1, kNever, 2);
  EXPECT_TRUE(instance.offer(1, 0, 0));
  EXPECT_TRUE(instance.offer(1, 0, 0));
  EXPECT_FALSE(instance.offer(1, 0, 0));
  instance.end_next(2);
  EXPECT_TRUE(instance.offer(1, 0, 2));
  EXPECT_DOUBLE_EQ(instance.next_end(), 2);
}

// The same by bookkeeping of every flow: what virtual time must agree with.
struct Plain {
  struct Flow {
    double left = 0;
    uint32_t tag = 0;
  };
  double capacity = 0;
  double most = 0;
  double now = 0;
  double available = capacity;
  std::vector<Flow> flows = {};

  double rate() const {
    return std::min(most, available / static_cast<double>(std::max<size_t>(1, flows.size())));
  }
  void advance(double to) {
    for (Flow& flow : flows) flow.left -= rate() * (to - now);
    now = to;
  }
  auto next() {
    return std::min_element(flows.begin(), flows.end(),
                            [](const Flow& a, const Flow& b) { return a.left < b.left; });
  }
};

TEST(SharedInstance, VirtualTimeAgreesWithEveryFlowsOwnAccount) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const double most = seed % 3 == 0 ? kNever : 1 + random.unit() * 5;
    SharedInstance instance(10, most, 1'000'000);
    Plain plain{10, most};
    double now = 0;
    for (uint32_t step = 0; step < 3000; ++step) {
      const double event = now + random.unit() * 0.4;
      while (instance.next_end() <= event) {
        const double end = instance.next_end();
        plain.advance(end);
        const auto expected = plain.next();
        ASSERT_NEAR(expected->left, 0, 1e-6) << "seed " << seed << " step " << step;
        ASSERT_EQ(instance.end_next(end).tag, expected->tag) << "seed " << seed;
        plain.flows.erase(expected);
      }
      now = event;
      plain.advance(now);
      if (random.below(10) == 0) {
        const double share = random.unit();
        instance.set_background(share, now);
        plain.available = 10 * (1 - share);
      } else {
        const double size = 1e-3 + random.unit() * 4;
        instance.offer(size, step, now);
        plain.flows.push_back({size, step});
      }
      ASSERT_EQ(instance.flows(), plain.flows.size()) << "seed " << seed << " step " << step;
    }
  }
}

TEST(EventTimes, FindTheEarliest) {
  for (const size_t count : {1, 2, 3, 7, 64, 100}) {
    EventTimes timers(count);
    EXPECT_EQ(timers.time(), kNever);
    std::vector<double> plain(count, kNever);
    Random random(count);
    for (int step = 0; step < 2000; ++step) {
      const size_t timer = random.below(count);
      plain[timer] = random.below(5) == 0 ? kNever : static_cast<double>(random.below(1000));
      timers.set(timer, plain[timer]);
      const auto least = std::min_element(plain.begin(), plain.end());
      ASSERT_EQ(timers.time(), *least) << count;
      ASSERT_EQ(timers.first(), static_cast<size_t>(least - plain.begin())) << count;
    }
  }
}

}  // namespace
}  // namespace ballast::sim
