// SPDX-License-Identifier: Apache-2.0
#include "lb/tables.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/random.h"
#include "wire/flow_hash.h"

namespace ballast::lb {
namespace {

bl_vip_key vip(uint16_t port, uint8_t protocol = IPPROTO_TCP) {
  bl_vip_key key{};
  key.address.word[0] = htonl(0xc0000201);
  key.port_be = htons(port);
  key.protocol = protocol;
  key.family = BL_FAMILY_IPV4;
  return key;
}

const bl_owner kOwner{
    .vip = vip(80), .address = {}, .port_be = 0, .family = BL_FAMILY_IPV4, .is_nat = 0};

bl_instance up(uint8_t last) {
  bl_instance instance{};
  instance.mac[5] = last;
  instance.state = BL_INSTANCE_UP;
  return instance;
}

class TablesTest : public testing::Test {
 protected:
  void SetUp() override {
    for (uint8_t i = 0; i < 4; ++i) EXPECT_EQ(*tables_.add_instance(up(i), kOwner), i);
  }
  Tables tables_;
};

TEST_F(TablesTest, WritesWhatIsNewOnceAndATableBeforeItsVip) {
  ASSERT_TRUE(tables_.set_vip(vip(80), std::vector<Share>{{0, 1}, {1, 3}}));
  const Writes first = tables_.take_writes();
  EXPECT_EQ(first.instances.size(), 4U);
  ASSERT_EQ(first.tables.size(), 1U);
  ASSERT_EQ(first.vips.size(), 2U);  // the VIP and its address
  EXPECT_EQ(first.vips[0].second.table, first.tables[0].first);
  EXPECT_EQ(first.vips[1].first.protocol, 0);
  EXPECT_EQ(first.tables[0].second.total, 4U);
  EXPECT_EQ(first.tables[0].second.members[0], 1U);
  EXPECT_TRUE(tables_.take_writes().is_empty());
}

TEST_F(TablesTest, TheSameAgainIsNoWrite) {
  const std::vector<Share> shares{{0, 1}, {1, 3}};
  ASSERT_TRUE(tables_.set_vip(vip(80), shares));
  tables_.take_writes();
  ASSERT_TRUE(tables_.set_vip(vip(80), shares));
  ASSERT_TRUE(tables_.set_instance(2, up(2)));
  EXPECT_TRUE(tables_.take_writes().is_empty());
}

TEST_F(TablesTest, ATableInUseIsNotWritten) {
  uint32_t in_use = BL_MOST_TABLES;
  for (uint32_t weight = 1; weight < 20; ++weight) {
    ASSERT_TRUE(tables_.set_vip(vip(80), std::vector<Share>{{0, weight}, {1, 20}}));
    const Writes writes = tables_.take_writes();
    ASSERT_EQ(writes.tables.size(), 1U);
    EXPECT_NE(writes.tables[0].first, in_use);
    in_use = writes.vips[0].second.table;
  }
}

TEST_F(TablesTest, OnlyTheVipThatChangedIsWritten) {
  for (uint16_t port = 1; port <= 50; ++port)
    ASSERT_TRUE(tables_.set_vip(vip(port), std::vector<Share>{{0, 1}}));
  std::set<uint32_t> slots;
  for (const auto& [slot, table] : tables_.take_writes().tables) slots.insert(slot);
  EXPECT_EQ(slots.size(), 50U);
  ASSERT_TRUE(tables_.set_vip(vip(7), std::vector<Share>{{1, 1}}));
  const Writes writes = tables_.take_writes();
  ASSERT_EQ(writes.tables.size(), 1U);
  EXPECT_FALSE(slots.contains(writes.tables[0].first));
  EXPECT_EQ(writes.vips.size(), 1U);
}

TEST_F(TablesTest, TheAddressGoesWithItsLastVip) {
  ASSERT_TRUE(tables_.set_vip(vip(80), {}));
  ASSERT_TRUE(tables_.set_vip(vip(80, IPPROTO_UDP), {}));
  EXPECT_EQ(tables_.take_writes().vips.size(), 3U);
  EXPECT_TRUE(tables_.remove_vip(vip(80)));
  EXPECT_EQ(tables_.take_writes().removed.size(), 1U);
  EXPECT_TRUE(tables_.remove_vip(vip(80, IPPROTO_UDP)));
  EXPECT_FALSE(tables_.remove_vip(vip(80, IPPROTO_UDP)));
  EXPECT_EQ(tables_.take_writes().removed.size(), 2U);
}

TEST_F(TablesTest, AVipThatComesBackAtOnceIsWrittenAndNotRemoved) {
  ASSERT_TRUE(tables_.set_vip(vip(80), std::vector<Share>{{0, 1}}));
  tables_.take_writes();
  tables_.remove_vip(vip(80));
  ASSERT_TRUE(tables_.set_vip(vip(80), std::vector<Share>{{1, 1}}));
  const Writes writes = tables_.take_writes();
  EXPECT_TRUE(writes.removed.empty());
  EXPECT_EQ(writes.tables.size(), 1U);
}

TEST_F(TablesTest, AnIndexIsNotGivenAwayBeforeItsRelease) {
  EXPECT_EQ(tables_.remove_instance(3).has_value(), true);
  for (uint32_t i = 4; i < BL_MOST_INSTANCES; ++i) ASSERT_TRUE(tables_.add_instance(up(1), kOwner));
  EXPECT_EQ(tables_.add_instance(up(1), kOwner).error().code, ErrorCode::kLimit);
  tables_.release(3);
  tables_.release(3);
  EXPECT_EQ(*tables_.add_instance(up(1), kOwner), 3U);
  tables_.release(3);  // it is in use
  EXPECT_FALSE(tables_.add_instance(up(1), kOwner));
}

// What the maps hold after writes, as a packet and the next process see them.
struct Maps {
  std::map<uint32_t, bl_owner> owners = {};
  std::map<uint32_t, bl_instance> instances = {};
  std::map<bl_vip_key, bl_vip, KeyLess> vips = {};
  std::map<bl_vip_key, bl_nat_source, KeyLess> sources = {};

  void take(const Writes& writes) {
    for (const auto& [index, owner] : writes.owners) owners[index] = owner;
    for (const auto& [index, instance] : writes.instances) instances[index] = instance;
    for (const auto& [key, source] : writes.nat_sources) sources[key] = source;
    for (const bl_vip_key& key : writes.nat_removed) sources.erase(key);
    for (const auto& [key, vip] : writes.vips) vips[key] = vip;
    for (const bl_vip_key& key : writes.removed) vips.erase(key);
    for (const auto& [index, instance] : writes.gone) instances[index] = instance;
  }
  Former former() const {
    Former former;
    for (const auto& [index, owner] : owners) {
      if (owner.vip.protocol == 0) continue;
      former.owners.emplace_back(index, owner);
      former.instances.emplace_back(index, instances.at(index));
    }
    former.vips.assign(vips.begin(), vips.end());
    return former;
  }
};

TEST_F(TablesTest, AProcessThatStartsAnewGoesOnFromTheMaps) {
  Maps maps;
  ASSERT_TRUE(tables_.set_vip(vip(80), std::vector<Share>{{0, 1}, {1, 3}}));
  ASSERT_TRUE(tables_.set_vip(vip(81), std::vector<Share>{{2, 1}}));
  maps.take(tables_.take_writes());
  tables_.remove_vip(vip(81));
  ASSERT_TRUE(tables_.remove_instance(2));
  maps.take(tables_.take_writes());
  tables_.release(2);
  maps.take(tables_.take_writes());

  Tables next;
  next.restore(maps.former());
  EXPECT_EQ(next.vips().size(), 1U);
  const uint32_t in_use = maps.vips.at(vip(80)).table;
  ASSERT_TRUE(next.set_vip(vip(80), std::vector<Share>{{0, 1}, {1, 3}}));
  const Writes writes = next.take_writes();
  EXPECT_TRUE(writes.instances.empty()) << "they are there";
  ASSERT_EQ(writes.tables.size(), 1U);
  EXPECT_NE(writes.tables[0].first, in_use) << "a table in use is not written";
  EXPECT_EQ(next.vip_index(vip(80)), tables_.vip_index(vip(80)));
  ASSERT_TRUE(next.set_vip(vip(82), std::vector<Share>{{3, 1}}));
  EXPECT_NE(next.vip_index(vip(82)), next.vip_index(vip(80)));
  maps.take(next.take_writes());
  next.remove_vip(vip(82));
  next.remove_vip(vip(80));
  maps.take(next.take_writes());
  EXPECT_TRUE(maps.vips.empty()) << "the address goes with its last VIP";
}

bl_owner nat_owner(uint16_t vip_port, uint16_t port) {
  bl_owner owner = kOwner;
  owner.vip = vip(vip_port);
  owner.address.word[0] = htonl(0x0a000001);
  owner.port_be = htons(port);
  return owner;
}

bl_instance nat(uint8_t last) {
  bl_instance instance = up(last);
  instance.method = BL_METHOD_NAT;
  return instance;
}

TEST_F(TablesTest, AnswersOfNatInstancesAreKnownByWhereTheyComeFrom) {
  Maps maps;
  const uint32_t index = *tables_.add_instance(up(9), nat_owner(80, 8080));
  maps.take(tables_.take_writes());
  EXPECT_TRUE(maps.sources.empty());
  ASSERT_TRUE(tables_.set_instance(index, nat(9)));
  maps.take(tables_.take_writes());
  ASSERT_EQ(maps.sources.size(), 1U);
  const auto& [key, source] = *maps.sources.begin();
  EXPECT_EQ(key.address.word[0], htonl(0x0a000001));
  EXPECT_EQ(key.port_be, htons(8080));
  EXPECT_EQ(source.address.word[0], vip(80).address.word[0]);
  EXPECT_EQ(source.port_be, htons(80));
  EXPECT_EQ(source.instance, index);
  ASSERT_TRUE(tables_.set_instance(index, nat(9)));
  EXPECT_TRUE(tables_.take_writes().is_empty());
  ASSERT_TRUE(tables_.set_instance(index, up(9)));
  maps.take(tables_.take_writes());
  EXPECT_TRUE(maps.sources.empty());
}

TEST_F(TablesTest, AnInstanceThatMovesToAnotherVipAnswersForBoth) {
  Maps maps;
  const auto who = [&maps](uint8_t mark) -> std::optional<uint32_t> {
    for (const auto& [key, source] : maps.sources)
      if ((key.family & BL_FORMER_SOURCE) == mark) return source.instance;
    return std::nullopt;
  };
  const uint32_t leaving = *tables_.add_instance(nat(9), nat_owner(80, 0));
  maps.take(tables_.take_writes());
  const uint32_t next = *tables_.add_instance(nat(9), nat_owner(81, 80));
  maps.take(tables_.take_writes());
  EXPECT_EQ(maps.sources.size(), 2U);
  EXPECT_EQ(who(0), next);
  EXPECT_EQ(who(BL_FORMER_SOURCE), leaving);
  for (const uint32_t again : {leaving, next, leaving})
    ASSERT_TRUE(tables_.set_instance(again, nat(9)));
  EXPECT_TRUE(tables_.take_writes().is_empty()) << "they do not take turns";

  Tables anew;
  anew.restore(maps.former());
  ASSERT_TRUE(anew.set_instance(next, nat(9)));
  maps.take(anew.take_writes());
  EXPECT_EQ(who(0), next);
  const uint32_t third = *anew.add_instance(nat(9), nat_owner(82, 80));
  maps.take(anew.take_writes());
  EXPECT_EQ(who(0), third);
  EXPECT_EQ(who(BL_FORMER_SOURCE), next);
  ASSERT_TRUE(anew.set_instance(leaving, nat(9)));
  EXPECT_TRUE(anew.take_writes().is_empty()) << "the first has lost its place for good";
  ASSERT_TRUE(anew.remove_instance(leaving));
  maps.take(anew.take_writes());
  EXPECT_EQ(maps.sources.size(), 2U);
  ASSERT_TRUE(anew.remove_instance(next));
  maps.take(anew.take_writes());
  EXPECT_EQ(maps.sources.size(), 1U);
  ASSERT_TRUE(anew.remove_instance(third));
  maps.take(anew.take_writes());
  EXPECT_TRUE(maps.sources.empty());
}

TEST_F(TablesTest, RefusesWhatCannotBeAndKeepsTheLast) {
  ASSERT_TRUE(tables_.set_vip(vip(80), std::vector<Share>{{0, 1}}));
  tables_.take_writes();
  std::vector<Share> many;
  for (uint32_t i = 4; i < BL_MOST_MEMBERS + 5; ++i) {
    ASSERT_TRUE(tables_.add_instance(up(1), kOwner));
    many.push_back({i, 1});
  }
  tables_.take_writes();
  EXPECT_EQ(tables_.set_vip(vip(80), many).error().code, ErrorCode::kLimit);
  for (size_t i = 0; i < many.size(); ++i) many[i].weight = static_cast<uint32_t>(i % 65);
  EXPECT_TRUE(tables_.set_vip(vip(81), many));  // 64 different ones
  for (size_t i = 0; i < many.size(); ++i) many[i].weight = static_cast<uint32_t>(i % 66);
  EXPECT_EQ(tables_.set_vip(vip(81), many).error().code, ErrorCode::kLimit);
  EXPECT_FALSE(tables_.set_vip(vip(80), std::vector<Share>{{0, 1}, {0, 2}}));
  EXPECT_FALSE(tables_.set_vip(vip(80), std::vector<Share>{{4000, 1}}));
  EXPECT_FALSE(tables_.set_vip(vip(80), std::vector<Share>{{0, 65'536}}));
  EXPECT_FALSE(tables_.set_vip(vip(80, IPPROTO_ICMP), std::vector<Share>{{0, 1}}));
  EXPECT_FALSE(tables_.remove_instance(0));            // VIP 80 names it
  EXPECT_EQ(tables_.take_writes().tables.size(), 1U);  // of 81 alone
}

TEST_F(TablesTest, TakesTheMostVips) {
  for (uint16_t port = 1; port <= BL_MOST_VIPS; ++port) ASSERT_TRUE(tables_.set_vip(vip(port), {}));
  EXPECT_EQ(tables_.set_vip(vip(2000), {}).error().code, ErrorCode::kLimit);
  for (const auto& [slot, table] : tables_.take_writes().tables) {
    EXPECT_LT(slot, uint32_t{BL_MOST_TABLES});
    EXPECT_EQ(table.class_count, 0U);
  }
  EXPECT_TRUE(tables_.remove_vip(vip(5)));
  EXPECT_TRUE(tables_.set_vip(vip(2000), {}));
}

TEST(FlowHash, BothHalvesAreUniformAndIndependent) {
  // Flows as clients make them: counted addresses and ports. A wrong mix shows in the grid.
  constexpr uint32_t kSide = 32;
  constexpr uint32_t kFlows = 1U << 20;
  for (const uint8_t family : {uint8_t{BL_FAMILY_IPV4}, uint8_t{BL_FAMILY_IPV6}}) {
    std::vector<uint32_t> grid(kSide * kSide);
    for (uint32_t i = 0; i < kFlows; ++i) {
      bl_flow_key key{};
      key.source.word[family == BL_FAMILY_IPV4 ? 0 : 3] = htonl(0x0a000000 + i / 1024);
      key.destination.word[0] = htonl(0xc0000201);
      key.source_port_be = htons(static_cast<uint16_t>(32'768 + i % 1024));
      key.destination_port_be = htons(443);
      key.protocol = IPPROTO_TCP;
      key.family = family;
      const bl_flow_hash hash = bl_hash_flow(&key, 42);
      ++grid[bl_scale(hash.of_class, kSide) * kSide + bl_scale(hash.of_member, kSide)];
    }
    double chi = 0;
    const double due = double{kFlows} / (kSide * kSide);
    for (const uint32_t seen : grid) chi += (seen - due) * (seen - due) / due;
    EXPECT_NEAR(chi, 1023, 5 * std::sqrt(2 * 1023.0));
  }
}

}  // namespace
}  // namespace ballast::lb
