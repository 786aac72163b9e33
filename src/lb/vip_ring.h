// SPDX-License-Identifier: Apache-2.0
// A VIP's ring, and where it is in the map of pages that all rings share. Pure.
// docs/design/lb-lost-balancer.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "balance/ring.h"
#include "wire/lb.h"
#include "wire/ring.h"

namespace ballast::lb {

// Which pages are free. One that went out of use rests until the next round of writes, as a packet
// may still read it.
class RingPages {
 public:
  RingPages();

  // Before each round of writes.
  void next_round();
  // None if there are not so many.
  std::optional<std::vector<uint16_t>> take(size_t count);
  void give_back(std::span<const uint16_t> pages);
  // In use by whoever wrote the maps before, until the next round but one.
  void occupy(std::span<const uint16_t> pages);
  size_t free() const { return free_.size(); }

 private:
  std::vector<uint16_t> free_;  // the one to be taken next is last
  std::vector<uint16_t> resting_;
  std::vector<uint16_t> occupied_;
};

struct RingShare {
  uint32_t instance = 0;  // index
  uint32_t weight = 0;    // of new flows
  balance::RingMember member;
};

using RingPageWrites = std::vector<std::pair<uint32_t, bl_ring_page>>;

class VipRing {
 public:
  // What "couplings" is to hold, and in `writes` the pages it needs if the ring is another one than
  // at the last call. Without members that have a place in the ring, or without a free page, the
  // coupling has no ring and the dispatch table chooses alone.
  bl_coupling next(const bl_vip_key& key, std::span<const RingShare> shares, RingPages& pages,
                   RingPageWrites& writes);
  void leave(RingPages& pages);

 private:
  void write(std::span<const bl_ring_slot> slots, RingPages& pages, RingPageWrites& writes);

  std::vector<balance::RingMember> members_;  // that the ring was made of
  size_t size_ = 0;
  std::vector<uint32_t> owned_;
  std::vector<uint16_t> pages_;
};

}  // namespace ballast::lb
