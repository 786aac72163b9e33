// SPDX-License-Identifier: Apache-2.0
#include "lb/vip_ring.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "balance/hash.h"

namespace ballast::lb {
namespace {

// Each VIP has a ring of its own, so that its losses do not add up with another one's.
uint64_t seed_of(const bl_vip_key& key) {
  return balance::key_hash({reinterpret_cast<const char*>(&key), sizeof(key)});
}

size_t pages_of(size_t slots) { return (slots + BL_RING_PAGE - 1) / BL_RING_PAGE; }

}  // namespace

RingPages::RingPages() {
  for (uint32_t page = BL_MOST_RING_PAGES; page > 0; --page)
    free_.push_back(static_cast<uint16_t>(page - 1));
}

void RingPages::next_round() {
  free_.insert(free_.end(), resting_.begin(), resting_.end());
  resting_ = std::exchange(occupied_, {});
}

std::optional<std::vector<uint16_t>> RingPages::take(size_t count) {
  if (count > free_.size()) return std::nullopt;
  std::vector<uint16_t> taken(free_.end() - static_cast<std::ptrdiff_t>(count), free_.end());
  free_.resize(free_.size() - count);
  return taken;
}

void RingPages::give_back(std::span<const uint16_t> pages) {
  resting_.insert(resting_.end(), pages.begin(), pages.end());
}

void RingPages::occupy(std::span<const uint16_t> pages) {
  std::erase_if(free_,
                [&](uint16_t page) { return std::ranges::find(pages, page) != pages.end(); });
  occupied_.assign(pages.begin(), pages.end());
}

void VipRing::write(std::span<const bl_ring_slot> slots, RingPages& pages, RingPageWrites& writes) {
  leave(pages);
  size_ = slots.size();
  auto taken = pages.take(pages_of(slots.size()));
  if (!taken) return;
  pages_ = std::move(*taken);
  for (size_t i = 0; i < pages_.size(); ++i) {
    bl_ring_page page{};
    const size_t first = i * BL_RING_PAGE;
    std::ranges::copy(slots.subspan(first, std::min<size_t>(BL_RING_PAGE, slots.size() - first)),
                      page.slots);
    writes.emplace_back(pages_[i], page);
  }
}

bl_coupling VipRing::next(const bl_vip_key& key, std::span<const RingShare> shares,
                          RingPages& pages, RingPageWrites& writes) {
  bl_coupling coupling{};
  std::vector<balance::RingMember> members;
  std::vector<uint32_t> weights;
  size_t in_ring = 0;
  for (const RingShare& share : shares) {
    members.push_back(share.member);
    weights.push_back(share.weight);
    in_ring += share.member.weight > 0;
  }
  if (in_ring == 0 || members.size() > balance::Ring::kMostMembers) {
    leave(pages);
    members_.clear();
    return coupling;
  }
  if (members != members_ || pages_.empty()) {
    const balance::Ring ring(members, seed_of(key), balance::Ring::size_for(in_ring));
    write(ring.slots(), pages, writes);
    members_ = std::move(members);
    owned_ = ring.owned();
  }
  if (pages_.empty()) return coupling;
  coupling.ring_size = static_cast<uint32_t>(size_);
  std::ranges::copy(pages_, coupling.pages);
  if (std::ranges::any_of(weights, [](uint32_t weight) { return weight > 0; })) {
    coupling.count = static_cast<uint32_t>(shares.size());
    std::ranges::copy(balance::couple(weights, owned_), coupling.members);
  }
  for (size_t i = 0; i < shares.size(); ++i)
    coupling.members[i].instance = static_cast<uint16_t>(shares[i].instance);
  return coupling;
}

void VipRing::leave(RingPages& pages) {
  pages.give_back(pages_);
  pages_.clear();
}

}  // namespace ballast::lb
