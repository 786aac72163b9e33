// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace ballast {
namespace {

TEST(Units, BytesWithAndWithoutUnit) {
  EXPECT_EQ(*parse_bytes("0"), 0U);
  EXPECT_EQ(*parse_bytes("65536"), 65536U);
  EXPECT_EQ(*parse_bytes("64KiB"), 65536U);
  EXPECT_EQ(*parse_bytes("64MiB"), 64U << 20);
  EXPECT_EQ(*parse_bytes("4GiB"), 4ULL << 30);
  EXPECT_EQ(*parse_bytes("1GB"), 1'000'000'000U);
  EXPECT_EQ(*parse_bytes("5B"), 5U);
  for (const char* text : {"", "x", "-1", "+1", "1.5GiB", "1 MiB", "1mib", "1T", " 1", "1KiBs",
                           "9223372036854775808", "99999999999GiB"}) {
    EXPECT_FALSE(parse_bytes(text)) << text;
  }
}

TEST(Units, DurationsNeedTheirUnit) {
  EXPECT_EQ(*parse_duration_ms("300ms"), 300U);
  EXPECT_EQ(*parse_duration_ms("2s"), 2000U);
  EXPECT_EQ(*parse_duration_ms("1m"), 60'000U);
  EXPECT_EQ(*parse_duration_ms("0ms"), 0U);
  for (const char* text : {"", "300", "s", "1h", "-1s", "1.5s", "4294968s", "1 s"}) {
    EXPECT_FALSE(parse_duration_ms(text)) << text;
  }
}

TEST(Units, WhatIsFormattedReadsBackTheSame) {
  Random random(20240817);
  for (int i = 0; i < 100'000; ++i) {
    const size_t bytes = random.next() >> (1 + random.below(62));
    ASSERT_EQ(*parse_bytes(format_bytes(bytes)), bytes) << bytes;
    const auto ms = static_cast<uint32_t>(random.next() >> (32 + random.below(32)));
    ASSERT_EQ(*parse_duration_ms(format_duration_ms(ms)), ms) << ms;
    const double rate = random.unit() * 1e6;
    ASSERT_EQ(*parse_rate(format_rate(rate)), rate) << rate;
  }
  EXPECT_EQ(format_bytes(65536), "64KiB");
  EXPECT_EQ(format_bytes(0), "0");
  EXPECT_EQ(format_duration_ms(1000), "1s");
  EXPECT_EQ(format_rate(0), "0");
}

TEST(Units, RatesAndSwitches) {
  EXPECT_EQ(*parse_rate("2500"), 2500.0);
  for (const char* text : {"", "-1", "nan", "inf", "1e999", "5/s"}) {
    EXPECT_FALSE(parse_rate(text)) << text;
  }
  EXPECT_TRUE(*parse_switch("on"));
  EXPECT_FALSE(*parse_switch("false"));
  EXPECT_FALSE(parse_switch("maybe"));
  EXPECT_FALSE(parse_count("4294967296"));
  EXPECT_FALSE(parse_count(""));
}

TEST(Units, SharesArePartsOfOneOrPercent) {
  EXPECT_DOUBLE_EQ(parse_share("0.02").value(), 0.02);
  EXPECT_DOUBLE_EQ(parse_share("2%").value(), 0.02);
  EXPECT_DOUBLE_EQ(parse_share("1").value(), 1);
  for (const char* wrong : {"", "%", "1.01", "101%", "-1", "nan", "2 %", "x"})
    EXPECT_FALSE(parse_share(wrong)) << wrong;
}

TEST(Units, NearestSuggestsOnlyWhatIsNear) {
  const std::vector<std::string> known{"sample", "listen", "lease", "tier"};
  EXPECT_EQ(nearest("sampel", known), "sample");
  EXPECT_EQ(nearest("listn", known), "listen");
  EXPECT_EQ(nearest("leases", known), "lease");
  EXPECT_EQ(nearest("bananas", known), "");
}

}  // namespace
}  // namespace ballast
