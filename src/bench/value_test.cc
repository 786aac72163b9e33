// SPDX-License-Identifier: Apache-2.0
#include "bench/value.h"

#include <gtest/gtest.h>

#include <string>

namespace ballast::bench {
namespace {

TEST(Value, IsReadBackAtEverySizeThatHoldsItsTag) {
  for (const uint32_t size : {52U, 53U, 54U, 64U, 4096U}) {
    const ValueTag tag{0xfedcba9876543210ULL, 0xffffffffU, 49, 0x80000001U, size};
    std::string value;
    append_value(value, tag);
    EXPECT_EQ(value.size(), size);
    EXPECT_EQ(read_value(value), tag) << size;
  }
}

TEST(Value, ShorterThanItsTagIsStillAsLongAsAsked) {
  std::string value;
  append_value(value, {1, 2, 3, 4, 5});
  EXPECT_EQ(value.size(), 5U);
  EXPECT_FALSE(read_value(value));
}

TEST(Value, CutLengthenedOrStrangeIsNotRead) {
  std::string value;
  append_value(value, {1, 2, 3, 4, 64});
  EXPECT_FALSE(read_value(value.substr(0, 63)));
  EXPECT_FALSE(read_value(value + "."));
  EXPECT_FALSE(read_value(std::string(64, 'x')));
  value.back() = 'x';
  EXPECT_FALSE(read_value(value));
}

}  // namespace
}  // namespace ballast::bench
