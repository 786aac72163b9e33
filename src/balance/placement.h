// SPDX-License-Identifier: Apache-2.0
// Where an object may be cached: slot -> shard -> rack for the home leaf (h0), and per upper layer
// an independent hash over a rendezvous-filled table for the spine (h1, ...). DistCache, section 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "balance/hash.h"

namespace ballast::balance {

// Nodes (leaves and spines alike) share one space of ids, chosen by the caller and small, since
// LoadTable is indexed by them.
inline constexpr uint16_t kNoNode = 0xffff;
inline constexpr size_t kSlots = 16384;

struct Member {
  uint16_t id = 0;
  bool alive = true;
  uint64_t name = 0;  // key_hash of a name that outlives renumbering; 0: the id is the name
};

// Key hash -> spine of one layer. A member that leaves or dies moves only its own keys, evenly over
// the rest; one that comes takes only what it gains. Rebuilding costs buckets x members.
class SpineTable {
 public:
  static constexpr size_t kBuckets = 65536;
  explicit SpineTable(uint64_t seed = 1, size_t buckets = kBuckets);

  void set_members(const std::vector<Member>& members);

  // kNoNode while no member is alive.
  uint16_t owner(uint64_t key_hash) const { return owners_[bucket(key_hash)]; }

  // The d highest ranked live members for this key into `out` (room for d), the owner first;
  // returns how many there are. If the first dies the second becomes the owner. O(members x d).
  size_t candidates(uint64_t key_hash, size_t d, uint16_t* out) const;

  std::span<const uint16_t> live() const { return live_ids_; }

 private:
  struct Live {
    uint16_t id;
    uint64_t name;
  };
  size_t bucket(uint64_t key_hash) const { return reduce(mix(key_hash, seed_), owners_.size()); }
  uint64_t rank(size_t bucket, uint64_t name) const;

  uint64_t seed_;
  std::vector<uint16_t> owners_;
  std::vector<Live> live_;
  std::vector<uint16_t> live_ids_;
};

// Slot -> shard -> rack, in contiguous equal ranges, the same ones `redis-cli --cluster create`
// gives as many primaries. Shards are numbered rack by rack.
class SlotMap {
 public:
  // Shards of each rack; 1 to 16384 in all (checked).
  explicit SlotMap(std::span<const size_t> shards_per_rack);

  uint16_t shard(size_t slot) const { return shard_of_slot_[slot]; }
  uint16_t rack(size_t slot) const { return rack_of_shard_[shard_of_slot_[slot]]; }
  uint16_t rack_of_shard(size_t shard) const { return rack_of_shard_[shard]; }
  size_t shards() const { return rack_of_shard_.size(); }
  size_t racks() const { return racks_; }
  // The shard's slots are [first_slot(shard), first_slot(shard + 1)).
  size_t first_slot(size_t shard) const;

 private:
  size_t racks_;
  std::vector<uint16_t> shard_of_slot_;
  std::vector<uint16_t> rack_of_shard_;
};

// The mechanisms compared in section 6 of the paper.
enum class Mechanism : uint8_t {
  kNoCache,      // no node
  kPartition,    // one node out of all cache nodes
  kReplication,  // every spine
  kDistCache,    // the home leaf and one spine of each upper layer
};

// All layers together: the set of nodes that may hold an object.
class Placement {
 public:
  // `layers` counts the leaves' layer: 2 is the paper's leaf-spine network. At least 1.
  explicit Placement(size_t layers = 2, uint64_t seed = 1);

  // Slot -> node id of the home leaf (kSlots entries); kNoNode where there is none.
  void set_homes(std::vector<uint16_t> home_of_slot);
  // Members of upper layer 1 ... layers() - 1.
  void set_members(size_t layer, std::vector<Member> members);

  size_t layers() const { return upper_.size() + 1; }
  uint16_t home(size_t slot) const { return home_of_slot_[slot]; }
  uint16_t spine(uint64_t key_hash, size_t layer = 1) const {
    return upper_[layer - 1].owner(key_hash);
  }
  const SpineTable& layer(size_t layer) const { return upper_[layer - 1]; }

  // Room that `out` of candidates() needs, for a key with up to `spines` copies a layer.
  size_t max_candidates(Mechanism mechanism, size_t spines = 1) const;
  // Nodes that may hold the object, home first, without kNoNode; returns their number. `spines`:
  // copies in each upper layer (DistCache only), more than one for a very hot key.
  size_t candidates(Mechanism mechanism, uint64_t key_hash, size_t slot, uint16_t* out,
                    size_t spines = 1) const;

 private:
  void rebuild_partition();

  std::vector<uint16_t> home_of_slot_;
  std::vector<SpineTable> upper_;
  std::vector<std::vector<Member>> members_;
  SpineTable everyone_;
};

}  // namespace ballast::balance
