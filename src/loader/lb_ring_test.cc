// SPDX-License-Identifier: Apache-2.0
// The packet path's choice by ring and coupling, against src/balance.
#include <gtest/gtest.h>

#include <numeric>

#include "balance/hash.h"
#include "balance/ring.h"
#include "base/random.h"
#include "loader/lb_fixture.h"
#include "wire/flow_hash.h"

namespace ballast::loader {
namespace {

class RingTest : public LbTest {
 protected:
  // Of VIP 0; members are instances 0, 1, ….
  void set_ring(const std::vector<balance::RingMember>& members,
                const std::vector<uint32_t>& weights) {
    ring_.emplace(members, kSeed, balance::Ring::size_for(members.size()));
    weights_ = weights;
    coupled_ = std::accumulate(weights.begin(), weights.end(), 0U) > 0
                   ? balance::couple(weights, ring_->owned())
                   : std::vector<bl_coupled>();
    bl_coupling coupling{};
    const auto slots = ring_->slots();
    coupling.ring_size = static_cast<uint32_t>(slots.size());
    coupling.count = static_cast<uint32_t>(coupled_.size());
    for (size_t i = 0; i < coupled_.size(); ++i) coupling.members[i] = coupled_[i];
    for (uint16_t i = 0; i < members.size(); ++i) coupling.members[i].instance = i;
    for (size_t first = 0; first < slots.size(); first += BL_RING_PAGE) {
      // Pages apart from each other: their numbers count, not their order.
      const auto number = static_cast<uint16_t>(BL_MOST_RING_PAGES - 1 - first / BL_RING_PAGE * 3);
      bl_ring_page page{};
      std::ranges::copy(slots.subspan(first, std::min<size_t>(BL_RING_PAGE, slots.size() - first)),
                        page.slots);
      coupling.pages[first / BL_RING_PAGE] = number;
      ASSERT_TRUE(program_->ring_pages().set(number, page));
    }
    ASSERT_TRUE(program_->couplings().set(0, coupling));
  }

  bl_ring_slot slot_of(const Bytes& packet) const {
    const bl_flow_key flow = flow_of(packet);
    const auto slots = ring_->slots();
    return slots[bl_ring_slot_of(bl_hash_flow(&flow, kSeed), static_cast<uint32_t>(slots.size()))];
  }

  int choice_of(const Bytes& packet) const {
    const bl_flow_key flow = flow_of(packet);
    return static_cast<int>(bl_couple(coupled_.data(), static_cast<uint32_t>(coupled_.size()),
                                      slot_of(packet).first, bl_hash_flow(&flow, kSeed)));
  }

  std::optional<balance::Ring> ring_;
  std::vector<uint32_t> weights_;
  std::vector<bl_coupled> coupled_;
};

std::vector<balance::RingMember> members_of(size_t count) {
  std::vector<balance::RingMember> members;
  for (size_t i = 0; i < count; ++i) members.push_back({balance::mix(i, 7), 1});
  return members;
}

TEST_F(RingTest, ChoosesAsTheBalanceFolderDoes) {
  constexpr int kFlows = 1'000'000;
  constexpr size_t kInstances = 200;
  Random random(kSeed);
  const std::vector<Bytes> kinds{packet4(tcp(kSyn)), packet6(tcp(kSyn)),
                                 packet4(udp(), {.protocol = IPPROTO_UDP}), packet4(tcp(kAck)),
                                 packet6(tcp(kAck))};
  for (uint32_t i = 0; i < kInstances; ++i) set_instance(i, instance(BL_METHOD_L2));
  int moved = 0;
  for (int i = 0; i < kFlows; ++i) {
    if (i % 20'000 == 0) {
      std::vector<uint32_t> weights(1 + random.below(kInstances));
      for (uint32_t& weight : weights) weight = static_cast<uint32_t>(random.below(17));
      weights[0] = 16;
      set_ring(members_of(weights.size()), weights);
    }
    const size_t kind = static_cast<size_t>(i) % kinds.size();
    const Bytes packet = from(kinds[kind], random);
    const int first = slot_of(packet).first;
    const int expected = kind >= 3 ? first : choice_of(packet);
    moved += expected != first;
    ASSERT_EQ(instance_of(packet), expected) << "flow " << i << " of kind " << kind;
  }
  EXPECT_GT(moved, kFlows / 20) << "both branches are tried";
  EXPECT_EQ(count(BL_EVENT_chosen_late), 2U * kFlows / 5);
}

TEST_F(RingTest, WithoutAWeightNothingNewIsTakenButWhatIsOpenElsewhereIs) {
  set_ring(members_of(4), {0, 0, 0, 0});
  EXPECT_EQ(run(packet4(tcp(kSyn))).action, uint32_t{XDP_DROP});
  const Bytes late = packet4(tcp(kAck, 40'001));
  EXPECT_EQ(instance_of(late), slot_of(late).first);
  EXPECT_EQ(count(BL_DROP_no_instance), 1U);
}

TEST_F(RingTest, FromTheMiddleOfAConnectionTheSecondOneIfTheFirstIsDown) {
  set_ring(members_of(4), {1, 1, 1, 1});
  set_instance(2, instance(BL_METHOD_L2, 0, BL_INSTANCE_DOWN));
  Random random(kSeed);
  int seen = 0;
  for (int i = 0; i < 200; ++i) {
    const Bytes packet = from(packet4(tcp(kAck)), random);
    const bl_ring_slot slot = slot_of(packet);
    ASSERT_EQ(instance_of(packet), slot.first == 2 ? slot.second : slot.first);
    seen += slot.first == 2;
  }
  EXPECT_GT(seen, 20);
}

TEST_F(RingTest, GueNamesTheOtherOneForWhatIsFromTheMiddleOnly) {
  for (uint32_t i = 0; i < 4; ++i) {
    const std::string words = "203.0.113.1" + std::to_string(i);
    set_instance(i, instance(BL_METHOD_GUE), words.c_str());
  }
  set_ring(members_of(4), {1, 1, 0, 0});
  constexpr size_t kGue = ETH_HLEN + sizeof(iphdr) + sizeof(udphdr);
  Random random(kSeed);
  int moved = 0;
  for (int i = 0; i < 200; ++i) {
    const Bytes late = from(packet4(tcp(kAck)), random);
    const bl_ring_slot slot = slot_of(late);
    const int coupled = choice_of(late);
    const int other = coupled != slot.first ? coupled : slot.second;
    moved += coupled != slot.first;
    // Of the first packet, the second, which opens the connection, and the third of it.
    for (int packet = 0; packet < 3; ++packet) {
      const TestRun done = run(late);
      ASSERT_EQ(done.action, uint32_t{XDP_TX});
      EXPECT_EQ(done.packet[5], slot.first);
      const Bytes named{1, IPPROTO_IPIP, 0, 0, 203, 0, 113, static_cast<uint8_t>(10 + other)};
      ASSERT_EQ(Bytes(done.packet.begin() + (kGue), done.packet.begin() + (kGue + 8)), named)
          << packet;
      const size_t length = done.packet.size() - ETH_HLEN;
      EXPECT_EQ(done.packet[ETH_HLEN + 3], length);
      EXPECT_EQ(done.packet[kGue - 3], length - sizeof(iphdr));
      EXPECT_EQ(checksum(&done.packet[ETH_HLEN], sizeof(iphdr)), 0);
      Bytes inner = late;
      --inner[ETH_HLEN + 8];
      EXPECT_EQ(Bytes(done.packet.begin() + (kGue + 8 + 20), done.packet.begin() + (kGue + 8 + 40)),
                Bytes(inner.begin() + (ETH_HLEN + 20), inner.begin() + (ETH_HLEN + 40)));
    }
  }
  EXPECT_GT(moved, 50);
  const Bytes fresh = packet4(tcp(kSyn, 1));
  EXPECT_EQ(run(fresh).packet[kGue] >> 4, 4) << "variant 1";
  EXPECT_EQ(run(packet4(tcp(kAck, 1))).packet[kGue] >> 4, 4);
}

TEST_F(RingTest, ASynThatIsSentAgainStaysWhateverTheRing) {
  set_ring(members_of(4), {1, 0, 0, 0});
  EXPECT_EQ(instance_of(packet4(tcp(kSyn))), 0);
  set_ring(members_of(3), {0, 1, 0});
  EXPECT_EQ(instance_of(packet4(tcp(kSyn))), 0);
  EXPECT_EQ(instance_of(packet4(tcp(kAck))), 0);
}

}  // namespace
}  // namespace ballast::loader
