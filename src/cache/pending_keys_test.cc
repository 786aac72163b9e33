// SPDX-License-Identifier: Apache-2.0
#include "cache/pending_keys.h"

#include <gtest/gtest.h>

namespace ballast::cache {
namespace {

TEST(PendingKeys, CountsEachKeysCommands) {
  PendingKeys keys;
  EXPECT_FALSE(keys.may_contain(5));
  keys.add(5);
  keys.add(5);
  keys.remove(5);
  EXPECT_TRUE(keys.may_contain(5));
  EXPECT_FALSE(keys.may_contain(6));
  keys.remove(5);
  EXPECT_FALSE(keys.may_contain(5));
}

TEST(PendingKeys, ACommandOnSeveralKeysMayBeOnAny) {
  PendingKeys keys;
  keys.add(0);
  EXPECT_TRUE(keys.may_contain(6));
  keys.remove(0);
  EXPECT_FALSE(keys.may_contain(6));
}

TEST(PendingKeys, HoldsAsManyAsAClientMayHavePending) {
  PendingKeys keys;
  for (size_t i = 0; i < PendingKeys::kMost; ++i) keys.add(7);
  EXPECT_TRUE(keys.may_contain(7));
  for (size_t i = 0; i < PendingKeys::kMost; ++i) keys.remove(7);
  EXPECT_FALSE(keys.may_contain(7));
}

}  // namespace
}  // namespace ballast::cache
