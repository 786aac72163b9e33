// SPDX-License-Identifier: Apache-2.0
#include "proto/slot.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace ballast::proto {
namespace {

// The definition, bit by bit.
uint16_t slow_crc16(std::string_view bytes) {
  unsigned crc = 0;
  for (char byte : bytes) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(byte)) << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000) != 0 ? ((crc << 1) ^ 0x1021) & 0xffff : crc << 1;
    }
  }
  return static_cast<uint16_t>(crc);
}

TEST(Slot, KnownValues) {
  EXPECT_EQ(crc16("123456789"), 0x31c3);  // the check value of the cluster specification
  EXPECT_EQ(key_slot("foo"), 12182);      // CLUSTER KEYSLOT of redis 7.0.15
  EXPECT_EQ(key_slot(""), 0);
}

TEST(Slot, EveryLengthAgreesWithTheDefinition) {
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random.below(70), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.below(256));
    ASSERT_EQ(crc16(bytes), slow_crc16(bytes)) << bytes.size();
  }
}

TEST(Slot, HashTags) {
  EXPECT_EQ(hashed_part("{user1000}.following"), "user1000");
  EXPECT_EQ(hashed_part("foo{}{bar}"), "foo{}{bar}");
  EXPECT_EQ(hashed_part("foo{{bar}}zap"), "{bar");
  EXPECT_EQ(hashed_part("foo{bar}{zap}"), "bar");
  EXPECT_EQ(hashed_part("foo{bar"), "foo{bar");
  EXPECT_EQ(hashed_part("}foo{bar}"), "bar");
}

}  // namespace
}  // namespace ballast::proto
