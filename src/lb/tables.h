// SPDX-License-Identifier: Apache-2.0
// From VIPs, instances and weights to what the packet path's maps hold, and of that only what
// changed. Pure: apply.h does the writing.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lb/vip_ring.h"
#include "wire/lb.h"

namespace ballast::lb {

struct Share {
  uint32_t instance = 0;   // index
  uint32_t weight = 0;     // 0: nothing new, what is open stays
  uint32_t ring = 0;       // its weight in the VIP's ring, the same on all balancers; 0: not in it
  bool gives_way = false;  // in the ring: it drains or is dead
  bool operator==(const Share&) const = default;
};

struct KeyLess {
  bool operator()(const bl_vip_key& a, const bl_vip_key& b) const {
    return std::memcmp(&a, &b, sizeof(a)) < 0;
  }
};

// To be written in this order: an instance before the table that names it, a table and the pages of
// its ring before the VIP that names it, and what goes after everything that named it. Writing
// again what was written is harmless, so after a failure the whole may be tried again; it must be
// before the next one.
struct Writes {
  std::vector<std::pair<uint32_t, bl_owner>> owners;
  std::vector<std::pair<uint32_t, bl_instance>> instances;
  RingPageWrites ring_pages;
  std::vector<std::pair<uint32_t, bl_coupling>> couplings;
  std::vector<std::pair<uint32_t, bl_dispatch_table>> tables;
  std::vector<std::pair<bl_vip_key, bl_nat_source>> nat_sources;
  std::vector<std::pair<bl_vip_key, bl_vip>> vips;
  std::vector<bl_vip_key> removed;
  std::vector<std::pair<uint32_t, bl_instance>> gone;
  std::vector<bl_vip_key> nat_removed;

  bool is_empty() const { return size() == 0; }
  size_t size() const;
};

// The table that gives each instance its share. kLimit for more than BL_MOST_MEMBERS instances or
// BL_MOST_CLASSES different weights above 0; kInvalid for an instance named twice. Without any
// weight it has no instance.
Result<bl_dispatch_table> dispatch_table_of(std::span<const Share> shares);

// What the maps held before this process.
struct Former {
  std::vector<std::pair<uint32_t, bl_owner>> owners;  // of all taken indices
  std::vector<std::pair<uint32_t, bl_instance>> instances;
  std::vector<std::pair<bl_vip_key, bl_vip>> vips;
  std::vector<uint16_t> ring_pages;  // that are in use
};

class Tables {
 public:
  // Goes on from there; the first to be called. Every VIP gets its table anew.
  void restore(const Former& former);
  std::vector<bl_vip_key> vips() const;

  // A new index. kLimit if there is none.
  Result<uint32_t> add_instance(const bl_instance& instance, const bl_owner& owner);
  // The next hop, the state or another detail of one that is there.
  Result<> set_instance(uint32_t index, const bl_instance& instance);
  // Gone for the packet path: its connections are given another one. No VIP may name it. The index
  // stays taken until release(), called when no connection has it.
  Result<> remove_instance(uint32_t index);
  void release(uint32_t index);

  // Makes or changes a VIP. kInvalid for a protocol other than TCP and UDP, for an instance that is
  // not there; kLimit as above and for too many VIPs. After an error nothing has changed.
  Result<> set_vip(const bl_vip_key& key, std::span<const Share> shares);
  // False: there is none. Its connections stay until they are deleted or age.
  bool remove_vip(const bl_vip_key& key);

  // The index under which a VIP counts.
  std::optional<uint32_t> vip_index(const bl_vip_key& key) const;

  // What changed since the last call; nothing if the contents are the same. A VIP whose table
  // changed gets its other one, so calls are to be further apart than a packet's time in the
  // program.
  Writes take_writes();

 private:
  struct Vip {
    uint32_t index = 0;
    uint32_t table = 0;
    bool is_written = false;  // with `written`
    bool is_known = false;    // to the packet path
    VipRing ring = {};
    std::vector<Share> wanted = {};
    std::vector<Share> written = {};
  };
  struct Slot {
    bl_instance instance{};
    bl_owner owner{};
    std::optional<bl_vip_key> source = {};  // in "nat_sources"
    bool has_lost_source = false;           // to a third one
    bool is_taken = false;
    bool is_dirty = false;
    bool is_owner_dirty = false;
  };

  Result<> check_shares(std::span<const Share> shares) const;
  bool is_there(uint32_t index) const;
  bool is_named(uint32_t index) const;
  void write_table(const bl_vip_key& key, Vip& vip, Writes& writes);
  void write_coupling(const bl_vip_key& key, Vip& vip, Writes& writes);
  void claim_source(uint32_t index);
  void give_way(uint32_t index);

  std::vector<Slot> instances_;
  std::deque<uint32_t> free_instances_;  // the longest unused first
  // Whose answers come from there. Several only while all but one are leaving: the last that was
  // set has the place, the one before it the place with BL_FORMER_SOURCE, and a third none.
  std::map<bl_vip_key, uint32_t, KeyLess> sources_;
  std::set<bl_vip_key, KeyLess> changed_sources_;
  std::map<bl_vip_key, Vip, KeyLess> vips_;
  std::deque<uint32_t> free_vips_;
  uint32_t vips_used_ = 0;
  std::map<bl_vip_key, uint32_t, KeyLess> addresses_;  // how many VIPs each has
  std::map<bl_vip_key, bl_vip, KeyLess> new_addresses_;
  std::vector<bl_vip_key> removed_;
  RingPages ring_pages_;
  std::vector<bool> has_ring_ = std::vector<bool>(BL_MOST_TABLES);  // what "couplings" may hold
};

}  // namespace ballast::lb
