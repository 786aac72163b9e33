// SPDX-License-Identifier: Apache-2.0
#include "balance/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "balance/dispatch_table.h"
#include "balance/hash.h"
#include "base/random.h"

namespace ballast::balance {
namespace {

constexpr uint64_t kSeed = 1806;

std::vector<RingMember> members_of(const std::vector<uint32_t>& weights) {
  std::vector<RingMember> members;
  for (size_t i = 0; i < weights.size(); ++i) members.push_back({mix(i, 77), weights[i]});
  return members;
}

Ring ring_of(const std::vector<RingMember>& members, uint64_t seed = kSeed) {
  return Ring(members, seed, Ring::size_for(members.size()));
}

double part_of(size_t count, size_t whole) {
  return static_cast<double>(count) / static_cast<double>(whole);
}

TEST(Ring, SizesGiveEachMember64SlotsAndArePrime) {
  for (const size_t members : {1, 3, 4, 5, 16, 17, 100, 513, 1024}) {
    const size_t size = Ring::size_for(members);
    EXPECT_GE(size + 64, 64 * members) << members;
    EXPECT_LE(size, size_t{BL_RING_PAGE} * BL_RING_PAGES);
    for (size_t divisor = 2; divisor * divisor <= size; ++divisor)
      EXPECT_NE(size % divisor, 0U) << size;
  }
}

TEST(Ring, SlotsAreSharedByWeight) {
  Random random(kSeed);
  for (const size_t count : {1, 2, 3, 16, 100, 1024}) {
    std::vector<uint32_t> weights(count);
    for (uint32_t& weight : weights) weight = static_cast<uint32_t>(1 + random.below(16));
    const Ring ring = ring_of(members_of(weights));
    const std::vector<uint32_t> owned = ring.owned();
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (size_t i = 0; i < count; ++i) {
      const double due = static_cast<double>(ring.slots().size()) * weights[i] / sum;
      EXPECT_NEAR(owned[i], due, 1.01) << i << " of " << count;
    }
  }
}

TEST(Ring, EverySlotHasTwoMembersAndNoneOfWeight0) {
  const Ring ring = ring_of(members_of({1, 0, 500, 1}));
  for (const bl_ring_slot slot : ring.slots()) {
    EXPECT_NE(slot.first, slot.second);
    EXPECT_NE(slot.first, 1);
    EXPECT_NE(slot.second, 1);
  }
  const Ring alone = ring_of(members_of({0, 3}));
  for (const bl_ring_slot slot : alone.slots()) {
    EXPECT_EQ(slot.first, 1);
    EXPECT_EQ(slot.second, 1) << "there is no other";
  }
  EXPECT_TRUE(ring_of(members_of({0, 0})).slots().empty());
  EXPECT_TRUE(ring_of({}).slots().empty());
}

TEST(Ring, DoesNotDependOnTheOrderOfItsMembers) {
  Random random(kSeed);
  std::vector<RingMember> members = members_of({1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 1, 1});
  const Ring ring = ring_of(members);
  std::vector<size_t> order(members.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (int round = 0; round < 50; ++round) {
    for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    std::vector<RingMember> shuffled;
    for (const size_t i : order) shuffled.push_back(members[i]);
    const Ring other = ring_of(shuffled);
    for (size_t s = 0; s < ring.slots().size(); ++s) {
      ASSERT_EQ(order[other.slots()[s].first], ring.slots()[s].first) << s;
      ASSERT_EQ(order[other.slots()[s].second], ring.slots()[s].second) << s;
    }
  }
}

TEST(Ring, AnotherSeedIsAnotherRing) {
  const std::vector<RingMember> members = members_of(std::vector<uint32_t>(10, 1));
  const Ring one = ring_of(members, 1);
  const Ring other = ring_of(members, 2);
  size_t same = 0;
  for (size_t s = 0; s < one.slots().size(); ++s)
    same += one.slots()[s].first == other.slots()[s].first;
  EXPECT_NEAR(part_of(same, one.slots().size()), 0.1, 0.04);
}

struct Moved {
  double of_others = 0;  // slots that changed hands between members that stay
  double to_second = 0;  // of the slots of the one that left, those that its second has now
};

// What happens when member `gone` leaves.
Moved moved(std::vector<RingMember> members, size_t gone) {
  const size_t size = Ring::size_for(members.size());
  const Ring before(members, kSeed, size);
  members[gone].weight = 0;
  const Ring after(members, kSeed, size);
  size_t others = 0;
  size_t left = 0;
  size_t seconds = 0;
  for (size_t s = 0; s < size; ++s) {
    const bl_ring_slot was = before.slots()[s];
    if (was.first != gone) {
      others += was.first != after.slots()[s].first;
      continue;
    }
    ++left;
    seconds += was.second == after.slots()[s].first;
  }
  return {part_of(others, size), part_of(seconds, left)};
}

TEST(Ring, AMemberThatLeavesMovesLittleElseAndMostlyToItsSecond) {
  for (const size_t count : {3, 10, 50, 200}) {
    double others = 0;
    double seconds = 0;
    for (size_t gone = 0; gone < 3; ++gone) {
      const Moved one = moved(members_of(std::vector<uint32_t>(count, 1)), gone);
      others += one.of_others / 3;
      seconds += one.to_second / 3;
    }
    EXPECT_LT(others, 0.03) << count;
    EXPECT_GT(seconds, 0.75) << count;
  }
}

TEST(Ring, WhoGivesWayIsTheSecondOfItsSlots) {
  std::vector<RingMember> members = members_of({1, 1, 1, 1});
  const Ring before = ring_of(members);
  members[2].gives_way = true;
  const Ring after = ring_of(members);
  EXPECT_EQ(after.owned()[2], 0U);
  for (size_t s = 0; s < before.slots().size(); ++s) {
    const bl_ring_slot was = before.slots()[s];
    const bl_ring_slot is = after.slots()[s];
    const bool swapped = is.first == was.second && is.second == was.first;
    const bool same = is.first == was.first && is.second == was.second;
    ASSERT_TRUE(was.first == 2 ? swapped : same);
  }
  for (RingMember& member : members) member.gives_way = true;
  EXPECT_EQ(ring_of(members).owned(), before.owned()) << "nobody can";
}

struct Outcome {
  std::vector<double> shares;
  double kept = 0;
};

Outcome outcome(const std::vector<uint32_t>& weights, const Ring& ring, size_t flows) {
  const std::vector<bl_coupled> members = couple(weights, ring.owned());
  const auto size = static_cast<uint32_t>(ring.slots().size());
  Outcome seen{std::vector<double>(weights.size()), 0};
  for (size_t flow = 0; flow < flows; ++flow) {
    const FlowHash hash = flow_hash(flow, kSeed);
    const uint16_t first = ring.slots()[bl_ring_slot_of(hash, size)].first;
    const uint32_t chosen =
        bl_couple(members.data(), static_cast<uint32_t>(members.size()), first, hash);
    seen.shares[chosen] += 1 / static_cast<double>(flows);
    seen.kept += (chosen == first) / static_cast<double>(flows);
  }
  return seen;
}

TEST(Coupling, GivesTheWantedSharesAndKeepsAsMuchOfTheRingAsCanBe) {
  constexpr size_t kFlows = 1'000'000;
  Random random(kSeed);
  for (const size_t count : {2, 5, 40, 150}) {
    const Ring ring = ring_of(members_of(std::vector<uint32_t>(count, 1)));
    std::vector<uint32_t> weights(count);
    for (uint32_t& weight : weights) weight = static_cast<uint32_t>(random.below(17));
    weights[0] = 16;
    weights[1] = 0;
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const Outcome seen = outcome(weights, ring, kFlows);
    for (size_t i = 0; i < count; ++i) {
      const double due = weights[i] / sum;
      EXPECT_NEAR(seen.shares[i], due, 5 * std::sqrt(due / kFlows)) << i << " of " << count;
    }
    EXPECT_NEAR(seen.kept, 1 - total_variation(weights, ring.owned()), 0.002);
  }
}

// The probability of each member, from the tables alone.
std::vector<double> exact_shares(std::span<const bl_coupled> members,
                                 std::span<const uint32_t> owned) {
  const double slots = std::accumulate(owned.begin(), owned.end(), 0.0);
  std::vector<double> shares(members.size());
  double moved = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const double keep = static_cast<double>(members[i].keep) / BL_ALWAYS;
    shares[i] = owned[i] / slots * keep;
    moved += owned[i] / slots * (1 - keep);
  }
  for (const bl_coupled& member : members) {
    const double own = static_cast<double>(member.own) / BL_ALWAYS;
    const double draw = moved / static_cast<double>(members.size());
    shares[static_cast<size_t>(&member - members.data())] += draw * own;
    shares[member.other] += draw * (1 - own);
  }
  return shares;
}

TEST(Coupling, IsExactToTheSizeOfItsNumbers) {
  Random random(kSeed);
  for (int round = 0; round < 300; ++round) {
    const size_t count = 1 + random.below(round % 10 == 0 ? Ring::kMostMembers : 60);
    const uint64_t most = round % 3 == 0 ? 17 : DispatchTable::kMostWeight + 1;
    std::vector<uint32_t> weights(count);
    std::vector<uint32_t> owned(count);
    for (uint32_t& weight : weights) weight = static_cast<uint32_t>(random.below(most));
    for (uint32_t& slots : owned) slots = static_cast<uint32_t>(random.below(64));
    weights[random.below(count)] = 1;
    owned[random.below(count)] = 1;
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const std::vector<double> shares = exact_shares(couple(weights, owned), owned);
    for (size_t i = 0; i < count; ++i)
      ASSERT_NEAR(shares[i], weights[i] / sum, 0x1.0p-30) << "round " << round << ", " << i;
  }
}

TEST(Coupling, EqualSharesKeepEveryFlow) {
  const std::vector<uint32_t> owned{50, 50, 151, 0};
  const std::vector<uint32_t> weights{50, 50, 151, 0};
  EXPECT_EQ(total_variation(weights, owned), 0);
  const std::vector<bl_coupled> members = couple(weights, owned);
  for (uint32_t first = 0; first < 3; ++first)
    EXPECT_EQ(bl_couple(members.data(), 4, first, {0, UINT32_MAX}), first);
  EXPECT_EQ(bl_couple(members.data(), 0, 0, {0, 0}), uint32_t{BL_MOST_COUPLED});
}

TEST(Coupling, TheEndsOfTheRangesAreRight) {
  const std::vector<bl_coupled> members{{7, BL_ALWAYS, 0, 0}, {0, 9, 0, 0}};
  const auto kept = [&](uint32_t first, uint32_t draw) {
    return bl_couple(members.data(), 2, first, {0, draw << 1 | 1}) == first;
  };
  EXPECT_TRUE(kept(0, 6));
  // Who is not kept is drawn: find a draw for each end of the second one's range.
  int to_own = 0;
  for (uint32_t draw = 7; draw < 100'000; ++draw) {
    const FlowHash hash{0, draw << 1};
    const FlowHash again = bl_hash_again(hash);
    const uint32_t place = bl_scale(again.of_class, 2);
    const uint32_t expected = place == 1 && again.of_member >> 1 < 9 ? 1 : 0;
    ASSERT_EQ(bl_couple(members.data(), 2, 0, hash), expected);
    to_own += place == 1;
  }
  EXPECT_NEAR(to_own, 50'000, 1'000);
  const std::vector<bl_coupled> drawn{{7, 0, 1, 0}, {0, 0, 1, 0}};
  EXPECT_EQ(bl_couple(drawn.data(), 2, 0, {0, 6 << 1 | 1}), 0U);
  EXPECT_EQ(bl_couple(drawn.data(), 2, 0, {0, 7 << 1}), 1U);
  const std::vector<bl_coupled> never{{0, 0, 1, 0}, {0, 0, 1, 0}};
  EXPECT_EQ(bl_couple(never.data(), 2, 0, {0, 0}), 1U) << "a probability of 0";
}

TEST(Coupling, WithOneHashForBothDrawsWouldNotGiveTheShares) {
  // Why each draw has its own: whether a flow is kept would say where in the ring it is.
  const Ring ring = ring_of(members_of({1, 1, 1, 1}));
  const std::vector<uint32_t> weights{1, 1, 4, 4};
  const std::vector<bl_coupled> members = couple(weights, ring.owned());
  std::vector<double> shares(4);
  for (size_t flow = 0; flow < 100'000; ++flow) {
    const uint32_t hash = flow_hash(flow, kSeed).of_class;
    const auto size = static_cast<uint32_t>(ring.slots().size());
    const uint16_t first = ring.slots()[bl_scale(hash, size)].first;
    const bool is_kept = (hash >> 1) < members[first].keep;
    const uint32_t place = bl_scale(hash, 4);
    const uint32_t drawn = (hash >> 1) < members[place].own ? place : members[place].other;
    shares[is_kept ? first : drawn] += 1e-5;
  }
  double off = 0;
  for (size_t i = 0; i < 4; ++i) off = std::max(off, std::abs(shares[i] - weights[i] / 10.0));
  EXPECT_GT(off, 0.02);
}

}  // namespace
}  // namespace ballast::balance
