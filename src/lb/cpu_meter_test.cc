// SPDX-License-Identifier: Apache-2.0
#include "lb/cpu_meter.h"

#include <gtest/gtest.h>

namespace ballast::lb {
namespace {

TEST(CpuMeter, TheHostsTimesAreAllButIdleAndWaiting) {
  const auto reading = parse_host_stat("cpu  10 20 30 4000 500 6 7 8 900 90\ncpu0 1 2 3\n", 100);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->used, (10 + 20 + 30 + 6 + 7 + 8) * kSecond / 100);
  EXPECT_GE(reading->cores, 1);
  for (const char* wrong : {"", "cpu 1 2 3\n", "cpu0 1 2 3 4 5 6 7 8\n", "cpu a b c d e f g h\n"})
    EXPECT_FALSE(parse_host_stat(wrong, 100)) << wrong;
}

TEST(CpuMeter, AGroupsUsageAndLimit) {
  EXPECT_EQ(parse_group_stat("usage_usec 1234\nuser_usec 1000\n").value(), 1'234'000);
  EXPECT_EQ(parse_group_stat("nr_periods 0\nusage_usec 5\n").value(), 5'000);
  EXPECT_FALSE(parse_group_stat("user_usec 1000\n"));
  EXPECT_DOUBLE_EQ(parse_group_limit("50000 100000\n", 8).value(), 0.5);
  EXPECT_DOUBLE_EQ(parse_group_limit("max 100000\n", 8).value(), 8);
  EXPECT_DOUBLE_EQ(parse_group_limit("1600000 100000\n", 8).value(), 8);
  for (const char* wrong : {"", "max", "0 100000", "-1 100000", "1 0", "x 100000"})
    EXPECT_FALSE(parse_group_limit(wrong, 8)) << wrong;
}

TEST(CpuMeter, WorkIsSeen) {
  const auto meter = CpuMeter::of_host();
  ASSERT_TRUE(meter) << meter.error().message;
  const auto before = meter->read();
  const Nanos until = now_ns() + 200 * kMillisecond;
  while (now_ns() < until) {
  }
  const auto after = meter->read();
  ASSERT_TRUE(before && after);
  EXPECT_GT(after->used - before->used, 50 * kMillisecond);
}

TEST(CpuMeter, AGroupThatIsNotThereIsNamed) {
  const auto meter = CpuMeter::of_group("/no/such/group");
  ASSERT_FALSE(meter);
  EXPECT_NE(meter.error().message.find("/no/such/group"), std::string::npos);
}

}  // namespace
}  // namespace ballast::lb
