// SPDX-License-Identifier: Apache-2.0
#include "balance/ring.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <queue>

#include "balance/hash.h"
#include "base/check.h"

namespace ballast::balance {
namespace {

constexpr uint16_t kNobody = 0xffff;

// A member on its way through its own permutation of the slots.
struct Walker {
  uint16_t member = 0;
  uint64_t name = 0;
  uint64_t weight = 0;
  uint64_t turns = 0;  // taken
  uint32_t next = 0;   // slot
  uint32_t skip = 0;
  uint32_t left = 0;  // slots not yet tried
};

// Whose turn is later: turns are spread evenly by weight (Webster's method), so that every prefix
// of them is in proportion and no other member's order changes when one goes.
struct IsLater {
  bool operator()(const Walker& a, const Walker& b) const {
    const uint64_t of_a = (2 * a.turns + 1) * b.weight;
    const uint64_t of_b = (2 * b.turns + 1) * a.weight;
    if (of_a != of_b) return of_a > of_b;
    return a.name != b.name ? a.name > b.name : a.member > b.member;
  }
};

class Filler {
 public:
  Filler(std::span<const RingMember> members, uint64_t seed, std::vector<bl_ring_slot>& slots)
      : slots_(slots) {
    const auto size = static_cast<uint32_t>(slots.size());
    for (size_t i = 0; i < members.size(); ++i) {
      if (members[i].weight == 0) continue;
      const uint64_t hash = mix(members[i].name, seed);
      walkers_.push({static_cast<uint16_t>(i), hash, members[i].weight, 0,
                     static_cast<uint32_t>(reduce(hash, size)),
                     static_cast<uint32_t>(1 + reduce(mix(hash, ~seed), size - 1)), size});
    }
  }

  size_t members() const { return walkers_.size(); }

  // Every slot gets its first one; who comes upon it next, its second.
  void fill() {
    size_t firsts = 0;
    size_t seconds = walkers_.size() > 1 ? 0 : slots_.size();
    while (firsts < slots_.size() || seconds < slots_.size()) {
      Walker walker = walkers_.top();
      walkers_.pop();
      ++walker.turns;
      take_turn(walker, firsts, seconds);
      if (walker.left > 0) walkers_.push(walker);
    }
    for (bl_ring_slot& slot : slots_) {
      if (slot.second == kNobody) slot.second = slot.first;
    }
  }

 private:
  // To the next slot that is free, or, once none is, to the next that lacks a second one.
  void take_turn(Walker& walker, size_t& firsts, size_t& seconds) {
    const auto size = static_cast<uint32_t>(slots_.size());
    while (walker.left > 0) {
      bl_ring_slot& slot = slots_[walker.next];
      walker.next = static_cast<uint32_t>((uint64_t{walker.next} + walker.skip) % size);
      --walker.left;
      if (slot.first == kNobody) {
        slot.first = walker.member;
        ++firsts;
        return;
      }
      if (slot.second != kNobody) continue;
      slot.second = walker.member;
      ++seconds;
      if (firsts == size) return;
    }
  }

  std::vector<bl_ring_slot>& slots_;
  std::priority_queue<Walker, std::vector<Walker>, IsLater> walkers_;
};

using Wide = unsigned __int128;

uint32_t part(Wide of, Wide whole) {
  return of >= whole ? BL_ALWAYS : static_cast<uint32_t>(of * BL_ALWAYS / whole);
}

// Walker's tables in whole numbers (Vose): `deficits` sum up to `total`, not 0.
void fill_alias(std::vector<bl_coupled>& members, std::span<const uint64_t> deficits,
                uint64_t total) {
  const Wide whole = total;
  std::vector<Wide> left(members.size());
  std::vector<uint16_t> small;
  std::vector<uint16_t> large;
  for (uint16_t i = 0; i < members.size(); ++i) {
    left[i] = Wide{deficits[i]} * members.size();
    (left[i] < whole ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    const uint16_t poor = small.back();
    const uint16_t rich = large.back();
    small.pop_back();
    members[poor].own = part(left[poor], whole);
    members[poor].other = rich;
    left[rich] -= whole - left[poor];
    if (left[rich] >= whole) continue;
    large.pop_back();
    small.push_back(rich);
  }
}

}  // namespace

size_t Ring::size_for(size_t members) {
  constexpr std::array<size_t, 9> kSizes{251, 509, 1021, 2039, 4093, 8191, 16'381, 32'749, 65'521};
  // The last prime before a power of two; a few slots under 64 do no harm.
  for (const size_t size : kSizes) {
    if (size + 64 > 64 * members) return size;
  }
  return kSizes.back();
}

Ring::Ring(std::span<const RingMember> members, uint64_t seed, size_t size)
    : members_(members.size()), slots_(size, {kNobody, kNobody}) {
  BALLAST_CHECK(members.size() <= kMostMembers && size > 2 && size < kNobody);
  Filler filler(members, seed, slots_);
  if (filler.members() == 0) {
    slots_.clear();
    return;
  }
  filler.fill();
  for (bl_ring_slot& slot : slots_) {
    if (members[slot.first].gives_way && !members[slot.second].gives_way)
      std::swap(slot.first, slot.second);
  }
}

std::vector<uint32_t> Ring::owned() const {
  std::vector<uint32_t> owned(members_);
  for (const bl_ring_slot& slot : slots_) ++owned[slot.first];
  return owned;
}

std::vector<bl_coupled> couple(std::span<const uint32_t> weights, std::span<const uint32_t> owned) {
  const uint64_t weight = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
  const uint64_t slots = std::accumulate(owned.begin(), owned.end(), uint64_t{0});
  BALLAST_CHECK(weights.size() == owned.size() && weights.size() <= Ring::kMostMembers);
  BALLAST_CHECK(weight > 0 && slots > 0);
  std::vector<bl_coupled> members(weights.size());
  std::vector<uint64_t> deficits(weights.size());
  uint64_t total = 0;
  for (uint16_t i = 0; i < members.size(); ++i) {
    // Both shares over the one denominator weight * slots.
    const uint64_t wanted = uint64_t{weights[i]} * slots;
    const uint64_t held = uint64_t{owned[i]} * weight;
    deficits[i] = wanted > held ? wanted - held : 0;
    total += deficits[i];
    members[i] = {held == 0 ? BL_ALWAYS : part(wanted, held), BL_ALWAYS, i, 0};
  }
  if (total > 0) fill_alias(members, deficits, total);
  return members;
}

double total_variation(std::span<const uint32_t> weights, std::span<const uint32_t> owned) {
  const double weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double slots = std::accumulate(owned.begin(), owned.end(), 0.0);
  if (weight == 0 || slots == 0) return 0;
  double common = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    common += std::min(weights[i] / weight, owned[i] / slots);
  return std::max(0.0, 1 - common);
}

}  // namespace ballast::balance
