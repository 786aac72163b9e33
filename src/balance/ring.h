// SPDX-License-Identifier: Apache-2.0
// A weighted stable ring (Maglev, NSDI 2016, section 3.4) and the maximal coupling of wanted shares
// to its shares. Every balancer with the same members and seed has the same ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/ring.h"

namespace ballast::balance {

struct RingMember {
  uint64_t name = 0;    // hash of what it is called on all balancers
  uint32_t weight = 1;  // 0: has no slot
  // Its slots' second ones come first: it drains or is dead, and shall come back to the same slots.
  bool gives_way = false;

  bool operator==(const RingMember&) const = default;
};

class Ring {
 public:
  static constexpr size_t kMostMembers = BL_MOST_COUPLED;

  // A prime with at least 64 slots for each of `members`, which have a weight; at most 65,521.
  static size_t size_for(size_t members);

  // At most kMostMembers; `size` is a prime. Names are to differ. Time: about size * log(size);
  // at most size * members.
  Ring(std::span<const RingMember> members, uint64_t seed, size_t size);

  // Numbers of members; none if no member has a weight.
  std::span<const bl_ring_slot> slots() const { return slots_; }
  // Slots in which each member is the first.
  std::vector<uint32_t> owned() const;

 private:
  size_t members_;
  std::vector<bl_ring_slot> slots_;
};

// For bl_couple(): the shares weights[i] / sum come out to 2^-30 each, and a flow gets another
// instance than its slot's first one with their total variation distance, the least possible.
// `owned`: of a ring with slots; weights each at most 65,535, as many, not all 0.
std::vector<bl_coupled> couple(std::span<const uint32_t> weights, std::span<const uint32_t> owned);

// 1 - the sum of min(t, b): the part of the new flows that do not go where the ring alone would
// send them. 0 if there is no weight or no slot.
double total_variation(std::span<const uint32_t> weights, std::span<const uint32_t> owned);

}  // namespace ballast::balance
