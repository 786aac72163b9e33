// SPDX-License-Identifier: Apache-2.0
#include "balance/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "base/random.h"

namespace ballast::balance {
namespace {

std::vector<Member> members(size_t n) {
  std::vector<Member> all;
  for (size_t i = 0; i < n; ++i) all.push_back({static_cast<uint16_t>(i), true, 0});
  return all;
}

// CRC16 (XModem), as Redis Cluster's specification gives it, bit by bit.
size_t slot_of(const std::string& key) {
  uint32_t crc = 0;
  for (const char c : key) {
    crc ^= static_cast<uint32_t>(static_cast<unsigned char>(c)) << 8;
    for (int bit = 0; bit < 8; ++bit) crc = ((crc << 1) ^ ((crc & 0x8000) ? 0x1021 : 0)) & 0xffff;
  }
  return crc % kSlots;
}

// Upper bound that a chi-square variable stays under but once in about 10^5 (Wilson-Hilferty).
double chi_square_bound(double freedom) {
  const double t = 2 / (9 * freedom);
  return freedom * std::pow(1 - t + 4.26 * std::sqrt(t), 3);
}

TEST(KeyHash, IsTheSameEverywhere) {
  EXPECT_EQ(key_hash("ballast"), key_hash(std::string("ballast")));
  EXPECT_NE(key_hash(""), key_hash(std::string_view("\0", 1)));
}

TEST(SpineTable, SpreadsKeysEvenly) {
  for (const size_t n : {1U, 2U, 4U, 32U, 100U}) {
    SpineTable table(n);
    table.set_members(members(n));
    std::vector<double> keys(n);
    const size_t total = 200'000;
    for (size_t i = 0; i < total; ++i) ++keys[table.owner(mix(i, 99))];
    // Two sources of spread: the keys, and the buckets a member won.
    const double mean = static_cast<double>(total) / static_cast<double>(n);
    const double deviation = std::sqrt(mean + mean * mean * static_cast<double>(n) / 65536.0);
    for (const double count : keys) EXPECT_NEAR(count, mean, 5 * deviation + 1) << n;
  }
}

TEST(SpineTable, LeavingMovesOnlyItsKeysAndSpreadsThem) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const size_t n = 2 + random.below(40);
    SpineTable before(seed);
    SpineTable after(seed);
    before.set_members(members(n));
    auto fewer = members(n);
    const auto gone = static_cast<uint16_t>(random.below(n));
    if (seed % 2 == 0) {
      fewer[gone].alive = false;
    } else {
      fewer.erase(fewer.begin() + gone);
    }
    std::reverse(fewer.begin(), fewer.end());  // the order must not matter
    after.set_members(fewer);
    std::vector<double> gained(n);
    size_t moved = 0;
    for (size_t i = 0; i < 100'000; ++i) {
      const uint64_t key = random.next();
      if (before.owner(key) == gone) {
        EXPECT_NE(after.owner(key), gone);
        ++gained[after.owner(key)];
        ++moved;
      } else {
        ASSERT_EQ(before.owner(key), after.owner(key));
      }
    }
    const double mean = static_cast<double>(moved) / static_cast<double>(n - 1);
    const double buckets = 65536.0 / static_cast<double>(n * (n - 1));
    for (size_t id = 0; id < n; ++id) {
      if (id == gone) continue;
      EXPECT_NEAR(gained[id], mean, 5 * std::sqrt(mean + mean * mean / buckets) + 1);
    }
    // And back: what comes takes only what it gains.
    after.set_members(members(n));
    for (size_t i = 0; i < 1000; ++i) {
      const uint64_t key = random.next();
      ASSERT_EQ(before.owner(key), after.owner(key));
    }
  }
}

TEST(SpineTable, NamesOutliveRenumbering) {
  SpineTable a(3);
  SpineTable b(3);
  a.set_members({{0, true, key_hash("x")}, {1, true, key_hash("y")}});
  b.set_members({{5, true, key_hash("y")}, {9, true, key_hash("x")}});
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(a.owner(mix(i, 1)) == 0, b.owner(mix(i, 1)) == 9);
  }
}

TEST(SpineTable, CandidatesAreDistinctOwnerFirstAndSucceedIt) {
  SpineTable table(5);
  table.set_members(members(8));
  SpineTable without(5);
  auto fewer = members(8);
  fewer[3].alive = false;
  without.set_members(fewer);
  for (uint64_t i = 0; i < 2000; ++i) {
    const uint64_t key = mix(i, 17);
    uint16_t out[10];
    ASSERT_EQ(table.candidates(key, 10, out), 8U);
    EXPECT_EQ(out[0], table.owner(key));
    EXPECT_EQ(std::set<uint16_t>(out, out + 8).size(), 8U);
    if (out[0] == 3) {
      EXPECT_EQ(without.owner(key), out[1]);
    }
    uint16_t three[3];
    ASSERT_EQ(table.candidates(key, 3, three), 3U);
    EXPECT_TRUE(std::equal(three, three + 3, out));
  }
}

TEST(SpineTable, NobodyAlive) {
  SpineTable table;
  EXPECT_EQ(table.owner(1), kNoNode);
  table.set_members({{0, false, 0}});
  uint16_t out[2];
  EXPECT_EQ(table.owner(1), kNoNode);
  EXPECT_EQ(table.candidates(1, 2, out), 0U);
}

// h0 and h1 must be independent, or the matching of the paper's theorem does not exist.
TEST(Placement, SpineIsIndependentOfSlotAndOfOtherLayers) {
  const size_t shards[] = {8, 8, 8, 8};
  const SlotMap slots(shards);
  Placement placement(3, 11);
  const size_t n = 4;
  placement.set_members(1, members(n));
  placement.set_members(2, members(n));
  const size_t total = 400'000;
  std::vector<double> joint(4 * n);
  std::vector<double> upper(n * n);
  std::vector<double> by_rack(4);
  std::vector<double> by_spine(n);
  std::vector<double> by_second(n);
  for (size_t i = 0; i < total; ++i) {
    const std::string key = "user:" + std::to_string(i);
    const uint64_t hash = key_hash(key);
    const size_t rack = slots.rack(slot_of(key));
    const size_t spine = placement.spine(hash);
    const size_t second = placement.spine(hash, 2);
    ++joint[rack * n + spine];
    ++upper[spine * n + second];
    ++by_rack[rack];
    ++by_spine[spine];
    ++by_second[second];
  }
  double first = 0;
  double layers = 0;
  for (size_t a = 0; a < 4; ++a) {
    for (size_t b = 0; b < n; ++b) {
      const double expected = by_rack[a] * by_spine[b] / total;
      first += std::pow(joint[a * n + b] - expected, 2) / expected;
      const double expected_upper = by_spine[a] * by_second[b] / total;
      layers += std::pow(upper[a * n + b] - expected_upper, 2) / expected_upper;
    }
  }
  EXPECT_LT(first, chi_square_bound(9));
  // The joint distribution of two tables of 65,536 buckets is itself a random draw, whose own
  // spread adds total / buckets times the freedom.
  EXPECT_LT(layers, chi_square_bound(9) * (1 + total / 65536.0));
}

TEST(SlotMap, RangesAreThoseOfClusterTooling) {
  const size_t three[] = {1, 1, 1};
  const SlotMap map(three);
  EXPECT_EQ(map.first_slot(1), 5461U);
  EXPECT_EQ(map.first_slot(2), 10923U);
  EXPECT_EQ(map.first_slot(3), kSlots);
  EXPECT_EQ(map.shard(5460), 0);
  EXPECT_EQ(map.shard(5461), 1);
  EXPECT_EQ(map.rack(16383), 2);
}

TEST(SlotMap, EveryShardHasItsShareInItsRack) {
  for (const size_t per_rack : {1U, 3U, 8U, 100U}) {
    const size_t racks[] = {per_rack, per_rack + 1, per_rack + 2};
    const SlotMap map(racks);
    std::vector<size_t> slots(map.shards());
    for (size_t slot = 0; slot < kSlots; ++slot) {
      ++slots[map.shard(slot)];
      ASSERT_EQ(map.rack(slot), map.rack_of_shard(map.shard(slot)));
    }
    const auto [least, most] = std::minmax_element(slots.begin(), slots.end());
    EXPECT_LE(*most - *least, 1U);
    EXPECT_EQ(map.rack_of_shard(per_rack - 1), 0);
    EXPECT_EQ(map.rack_of_shard(per_rack), 1);
    EXPECT_EQ(map.rack_of_shard(map.shards() - 1), 2);
  }
}

class MechanismTest : public ::testing::Test {
 protected:
  MechanismTest() {
    // Leaves 0 ... 3, spines 4 ... 7, the last one dead.
    std::vector<uint16_t> homes(kSlots);
    for (size_t slot = 0; slot < kSlots; ++slot) homes[slot] = static_cast<uint16_t>(slot / 4096);
    placement_.set_homes(homes);
    placement_.set_members(1, {{4, true, 0}, {5, true, 0}, {6, true, 0}, {7, false, 0}});
  }
  std::vector<uint16_t> candidates(Mechanism mechanism, uint64_t key, size_t slot,
                                   size_t spines = 1) const {
    std::vector<uint16_t> out(placement_.max_candidates(mechanism, spines));
    out.resize(placement_.candidates(mechanism, key, slot, out.data(), spines));
    return out;
  }
  Placement placement_;
};

TEST_F(MechanismTest, CandidateSets) {
  std::set<uint16_t> used;
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t key = mix(i, 5);
    const size_t slot = i * 16 % kSlots;
    EXPECT_TRUE(candidates(Mechanism::kNoCache, key, slot).empty());
    EXPECT_EQ(candidates(Mechanism::kReplication, key, slot), (std::vector<uint16_t>{4, 5, 6}));
    EXPECT_EQ(candidates(Mechanism::kDistCache, key, slot),
              (std::vector<uint16_t>{placement_.home(slot), placement_.spine(key)}));
    const auto wide = candidates(Mechanism::kDistCache, key, slot, 2);
    ASSERT_EQ(wide.size(), 3U);
    EXPECT_EQ(wide[1], placement_.spine(key));
    EXPECT_NE(wide[1], wide[2]);
    const auto one = candidates(Mechanism::kPartition, key, slot);
    ASSERT_EQ(one.size(), 1U);
    used.insert(one[0]);
  }
  EXPECT_EQ(used, (std::set<uint16_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST_F(MechanismTest, ASlotWithoutHomeHasOnlyTheSpine) {
  placement_.set_homes(std::vector<uint16_t>(kSlots, kNoNode));
  EXPECT_EQ(candidates(Mechanism::kDistCache, 42, 0).size(), 1U);
}

}  // namespace
}  // namespace ballast::balance
