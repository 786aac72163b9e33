// SPDX-License-Identifier: Apache-2.0
#include "lb/vip_ring.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lb/tables.h"

namespace ballast::lb {
namespace {

bl_vip_key vip(uint16_t port) {
  bl_vip_key key{};
  key.address.word[0] = htonl(0xc0000201);
  key.port_be = htons(port);
  key.protocol = IPPROTO_TCP;
  key.family = BL_FAMILY_IPV4;
  return key;
}

bl_instance up() {
  bl_instance instance{};
  instance.state = BL_INSTANCE_UP;
  return instance;
}

bl_owner owner(uint32_t host) {
  bl_owner owner{};
  owner.vip = vip(80);
  owner.address.word[0] = host;
  owner.family = BL_FAMILY_IPV4;
  return owner;
}

// One balancer's maps.
struct Maps {
  Tables tables = {};
  std::map<uint32_t, bl_ring_page> pages = {};
  std::map<uint32_t, bl_coupling> couplings = {};
  std::map<bl_vip_key, bl_vip, KeyLess> vips = {};

  Writes write() {
    Writes writes = tables.take_writes();
    for (const auto& [index, page] : writes.ring_pages) pages[index] = page;
    for (const auto& [index, coupling] : writes.couplings) couplings[index] = coupling;
    for (const auto& [key, value] : writes.vips) vips[key] = value;
    return writes;
  }
  const bl_coupling& coupling(uint16_t port) { return couplings[vips.at(vip(port)).table]; }
  bl_ring_slot slot(uint16_t port, uint32_t number) {
    return pages[coupling(port).pages[number / BL_RING_PAGE]].slots[number % BL_RING_PAGE];
  }
  uint32_t first(uint16_t port, uint32_t number) {
    return coupling(port).members[slot(port, number).first].instance;
  }
};

TEST(VipRing, TwoBalancersHaveOneRingWhateverTheirIndicesAndWeights) {
  Maps one;
  Maps other;
  std::vector<Share> shares;
  std::vector<Share> turned;
  for (uint32_t i = 0; i < 6; ++i) {
    shares.push_back({*one.tables.add_instance(up(), owner(i)), i % 3, 1024});
    turned.insert(turned.begin(), {*other.tables.add_instance(up(), owner(5 - i)), 5, 1024});
  }
  ASSERT_TRUE(one.tables.set_vip(vip(80), shares));
  ASSERT_TRUE(other.tables.set_vip(vip(80), turned));
  one.write();
  other.write();
  ASSERT_EQ(one.coupling(80).ring_size, 509U);
  ASSERT_EQ(other.coupling(80).ring_size, 509U);
  for (uint32_t s = 0; s < 509; ++s) ASSERT_EQ(one.first(80, s), 5 - other.first(80, s)) << s;
}

TEST(VipRing, PagesAreWrittenOnlyWhenTheRingChangesAndNeverInUse) {
  Maps maps;
  for (uint32_t i = 0; i < 20; ++i) ASSERT_TRUE(maps.tables.add_instance(up(), owner(i)));
  std::set<uint32_t> in_use;
  for (uint32_t round = 0; round < 200; ++round) {
    std::vector<Share> shares;
    const bool is_changed = round % 3 == 0;
    for (uint32_t i = 0; i < 12; ++i)
      shares.push_back({i, round % 7 + i, i == 0 ? 1 + round / 3 : 100});
    ASSERT_TRUE(maps.tables.set_vip(vip(80), shares));
    const Writes writes = maps.write();
    EXPECT_EQ(writes.ring_pages.size(), is_changed ? 4U : 0U) << round;
    for (const auto& [index, page] : writes.ring_pages) EXPECT_FALSE(in_use.contains(index));
    const bl_coupling& coupling = maps.coupling(80);
    in_use = {coupling.pages, coupling.pages + 4};
  }
}

TEST(VipRing, WithoutOneTheDispatchTableChooses) {
  Maps maps;
  for (uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(maps.tables.add_instance(up(), owner(i)));
  ASSERT_TRUE(maps.tables.set_vip(vip(80), std::vector<Share>{{0, 1}, {1, 2}}));
  EXPECT_TRUE(maps.write().couplings.empty());
  ASSERT_TRUE(maps.tables.set_vip(vip(80), std::vector<Share>{{0, 1, 1}, {1, 2, 1}}));
  maps.write();
  EXPECT_EQ(maps.coupling(80).ring_size, 251U);
  // A ring that was there is taken away in whichever table comes into use.
  maps.tables.remove_vip(vip(80));
  maps.write();
  for (uint16_t port = 81; port < 81 + 2 * BL_MOST_VIPS; ++port) {
    ASSERT_TRUE(maps.tables.set_vip(vip(port), std::vector<Share>{{0, 1}, {1, 2}}));
    maps.write();
    ASSERT_EQ(maps.coupling(port).ring_size, 0U);
    ASSERT_TRUE(maps.tables.remove_vip(vip(port)));
    maps.write();
  }
}

TEST(VipRing, APageThatAFormerProcessLeftInUseIsNotWrittenAtFirst) {
  Former former;
  for (uint16_t page = 0; page < 100; ++page) former.ring_pages.push_back(page);
  Maps maps;
  maps.tables.restore(former);
  for (uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(maps.tables.add_instance(up(), owner(i)));
  ASSERT_TRUE(maps.tables.set_vip(vip(80), std::vector<Share>{{0, 1, 1}, {1, 2, 1}}));
  const Writes writes = maps.write();
  ASSERT_EQ(writes.ring_pages.size(), 1U);
  EXPECT_GE(writes.ring_pages[0].first, 100U);
}

TEST(VipRing, EveryVipFindsPagesWhateverItsSize) {
  Maps maps;
  for (uint32_t i = 0; i < BL_MOST_INSTANCES; ++i)
    ASSERT_TRUE(maps.tables.add_instance(up(), owner(i)));
  uint32_t next = 0;
  for (uint16_t port = 1; port <= BL_MOST_VIPS && next < BL_MOST_INSTANCES; ++port) {
    std::vector<Share> shares;
    for (uint32_t i = 0; i < 5 && next < BL_MOST_INSTANCES; ++i) shares.push_back({next++, 1, 1});
    ASSERT_TRUE(maps.tables.set_vip(vip(port), shares));
  }
  for (uint32_t round = 1; round < 4; ++round) {
    maps.write();
    for (const auto& [key, value] : maps.vips) {
      if (key.protocol == 0) continue;
      ASSERT_GT(maps.couplings[value.table].ring_size, 0U) << ntohs(key.port_be);
      const bl_coupling& coupling = maps.couplings[value.table];
      std::vector<Share> shares;
      for (uint32_t i = 0; i < coupling.count; ++i)
        shares.push_back({coupling.members[i].instance, 1, 1 + i * round});
      ASSERT_TRUE(maps.tables.set_vip(key, shares));
    }
  }
}

}  // namespace
}  // namespace ballast::lb
