// SPDX-License-Identifier: Apache-2.0
#include "bench/keys.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "balance/hash.h"

namespace ballast::bench {
namespace {

Settings small(Spread spread) {
  Settings settings;
  settings.spread = spread;
  settings.keys = 1000;
  return settings;
}

std::vector<uint32_t> counts(Keys& keys, int draws) {
  Random random(7);
  std::vector<uint32_t> out(keys.size());
  for (int i = 0; i < draws; ++i) ++out[keys.draw(random)];
  return out;
}

TEST(Keys, AreNamedAlikeInEveryForm) {
  const auto keys = Keys::create(small(Spread::kUniform));
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->text(42), "key:000000000042");
  std::string bulk;
  keys->append_bulk(bulk, 999);
  EXPECT_EQ(bulk, "$16\r\nkey:000000000999\r\n");
  EXPECT_EQ(keys->hash(42), balance::key_hash("key:000000000042"));
}

TEST(Keys, HotspotSendsItsShareToItsKeys) {
  Settings settings = small(Spread::kHotspot);
  settings.hot_reads = 0.9;
  settings.hot_keys = 0.01;
  auto keys = Keys::create(settings);
  ASSERT_TRUE(keys);
  const auto seen = counts(*keys, 100'000);
  uint32_t hot = 0;
  for (uint32_t rank = 0; rank < 10; ++rank) hot += seen[rank];
  EXPECT_NEAR(hot, 90'000, 1'000);
}

TEST(Keys, ZipfRanksAreHottestFirstAndUniformOnesAlike) {
  auto zipf = Keys::create(small(Spread::kZipf));
  ASSERT_TRUE(zipf);
  const auto skewed = counts(*zipf, 100'000);
  EXPECT_GT(skewed[0], 3 * skewed[9]);
  auto uniform = Keys::create(small(Spread::kUniform));
  ASSERT_TRUE(uniform);
  const auto flat = counts(*uniform, 1'000'000);
  EXPECT_NEAR(flat[0], 1000, 200);
  EXPECT_NEAR(flat[999], 1000, 200);
}

TEST(Keys, ReplayKeepsTheOrderAndRanksByFrequency) {
  Settings settings = small(Spread::kReplay);
  settings.replay_file = testing::TempDir() + "/ballast-keys-test-" + std::to_string(getpid());
  std::ofstream(settings.replay_file) << "a\nb\nb\nc c\nb\na\n";
  auto keys = Keys::create(settings);
  std::remove(settings.replay_file.c_str());
  ASSERT_TRUE(keys) << keys.error().message;
  ASSERT_EQ(keys->size(), 3U);
  EXPECT_EQ(keys->text(0), "b");
  EXPECT_EQ(keys->text(2), "c c");
  Random random(1);
  std::string order;
  for (int i = 0; i < 8; ++i) order += keys->text(keys->draw(random)) + "|";
  EXPECT_EQ(order, "a|b|b|c c|b|a|a|b|");
  settings.replay_file = "/nowhere/keys";
  EXPECT_FALSE(Keys::create(settings));
}

TEST(Keys, ClassesFollowTheRank) {
  Settings settings = small(Spread::kZipf);
  settings.keys = 10'000;
  const auto keys = Keys::create(settings);
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->key_class(9), KeyClass::kTop);
  EXPECT_EQ(keys->key_class(10), KeyClass::kHot);
  EXPECT_EQ(keys->key_class(99), KeyClass::kHot);
  EXPECT_EQ(keys->key_class(100), KeyClass::kRest);
}

}  // namespace
}  // namespace ballast::bench
