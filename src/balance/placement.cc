// SPDX-License-Identifier: Apache-2.0
#include "balance/placement.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace ballast::balance {

SpineTable::SpineTable(uint64_t seed, size_t buckets) : seed_(seed), owners_(buckets, kNoNode) {
  BALLAST_CHECK(buckets > 0);
}

uint64_t SpineTable::rank(size_t bucket, uint64_t name) const {
  return mix(name ^ mix(bucket, ~seed_), seed_);
}

void SpineTable::set_members(const std::vector<Member>& members) {
  live_.clear();
  live_ids_.clear();
  for (const Member& member : members) {
    if (!member.alive) continue;
    BALLAST_CHECK(member.id != kNoNode);
    const uint64_t name = member.name != 0 ? member.name : mix(member.id, 0);
    live_.push_back({member.id, name});
    live_ids_.push_back(member.id);
  }
  for (size_t bucket = 0; bucket < owners_.size(); ++bucket) {
    uint16_t best = kNoNode;
    uint64_t best_rank = 0;
    for (const Live& live : live_) {
      const uint64_t r = rank(bucket, live.name);
      if (best == kNoNode || r > best_rank) {
        best = live.id;
        best_rank = r;
      }
    }
    owners_[bucket] = best;
  }
}

size_t SpineTable::candidates(uint64_t key_hash, size_t d, uint16_t* out) const {
  const size_t b = bucket(key_hash);
  const size_t wanted = std::min(d, live_.size());
  // Each round takes the best rank below the last one taken, so no scratch memory is needed.
  uint64_t below = UINT64_MAX;
  for (size_t taken = 0; taken < wanted; ++taken) {
    uint16_t best = kNoNode;
    uint64_t best_rank = 0;
    for (const Live& live : live_) {
      const uint64_t r = rank(b, live.name);
      if ((taken > 0 && r >= below) || (best != kNoNode && r <= best_rank)) continue;
      best = live.id;
      best_rank = r;
    }
    if (best == kNoNode) return taken;  // only if two ranks collide, once in 2^64
    out[taken] = best;
    below = best_rank;
  }
  return wanted;
}

SlotMap::SlotMap(std::span<const size_t> shards_per_rack)
    : racks_(shards_per_rack.size()), shard_of_slot_(kSlots) {
  for (size_t rack = 0; rack < racks_; ++rack) {
    rack_of_shard_.insert(rack_of_shard_.end(), shards_per_rack[rack], static_cast<uint16_t>(rack));
  }
  BALLAST_CHECK(!rack_of_shard_.empty() && rack_of_shard_.size() <= kSlots);
  for (size_t shard = 0; shard < shards(); ++shard) {
    for (size_t slot = first_slot(shard); slot < first_slot(shard + 1); ++slot) {
      shard_of_slot_[slot] = static_cast<uint16_t>(shard);
    }
  }
}

size_t SlotMap::first_slot(size_t shard) const {
  // shard * kSlots / shards, rounded to nearest.
  return (2 * shard * kSlots + shards()) / (2 * shards());
}

Placement::Placement(size_t layers, uint64_t seed)
    : home_of_slot_(kSlots, kNoNode), members_(layers - 1), everyone_(mix(seed, 0)) {
  BALLAST_CHECK(layers >= 1);
  for (size_t layer = 1; layer < layers; ++layer) upper_.emplace_back(mix(seed, layer));
}

void Placement::set_homes(std::vector<uint16_t> home_of_slot) {
  BALLAST_CHECK(home_of_slot.size() == kSlots);
  home_of_slot_ = std::move(home_of_slot);
  rebuild_partition();
}

void Placement::set_members(size_t layer, std::vector<Member> members) {
  BALLAST_CHECK(layer >= 1 && layer < layers());
  members_[layer - 1] = std::move(members);
  upper_[layer - 1].set_members(members_[layer - 1]);
  rebuild_partition();
}

void Placement::rebuild_partition() {
  std::vector<uint16_t> leaves(home_of_slot_);
  std::sort(leaves.begin(), leaves.end());
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  std::vector<Member> all;
  for (const uint16_t leaf : leaves) {
    if (leaf != kNoNode) all.push_back({leaf, true, 0});
  }
  for (const auto& members : members_) all.insert(all.end(), members.begin(), members.end());
  everyone_.set_members(all);
}

size_t Placement::max_candidates(Mechanism mechanism, size_t spines) const {
  size_t live = 0;
  for (const SpineTable& table : upper_) live += table.live().size();
  switch (mechanism) {
    case Mechanism::kNoCache:
      return 0;
    case Mechanism::kPartition:
      return 1;
    case Mechanism::kReplication:
      return live;
    case Mechanism::kDistCache:
      return 1 + std::min(live, spines * upper_.size());
  }
  return 0;
}

size_t Placement::candidates(Mechanism mechanism, uint64_t key_hash, size_t slot, uint16_t* out,
                             size_t spines) const {
  size_t count = 0;
  const auto add = [&](uint16_t node) {
    if (node != kNoNode) out[count++] = node;
  };
  switch (mechanism) {
    case Mechanism::kNoCache:
      break;
    case Mechanism::kPartition:
      add(everyone_.owner(key_hash));
      break;
    case Mechanism::kReplication:
      for (const SpineTable& table : upper_) {
        for (const uint16_t node : table.live()) add(node);
      }
      break;
    case Mechanism::kDistCache:
      add(home_of_slot_[slot]);
      for (const SpineTable& table : upper_) {
        if (spines == 1) {
          add(table.owner(key_hash));
        } else {
          count += table.candidates(key_hash, spines, out + count);
        }
      }
      break;
  }
  return count;
}

}  // namespace ballast::balance
