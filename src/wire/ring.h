// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The choice of an instance coupled to a stable ring, for the packet path and for every model of
// it: there is no other. The instances get the shares that are wanted, and as many flows as
// possible the instance that the ring alone would give them. docs/design/lb-lost-balancer.md.
#pragma once

#include "wire/dispatch.h"

enum {
  BL_RING_PAGE = 256,         // slots of a page
  BL_RING_PAGES = 256,        // of the largest ring
  BL_MOST_RING_PAGES = 8192,  // of all rings together
  BL_MOST_COUPLED = 1024,     // instances of one VIP that are in its ring or have a weight
};

// The probability 1 where one is a whole number.
#define BL_ALWAYS BL_CAST(__u32, 0x80000000)

// Places in bl_coupling.members. The second one is who would have the slot if the first were not
// there; the same one where there is no second.
struct bl_ring_slot {
  __u16 first;
  __u16 second;
};

// Map "ring_pages". A page in use is never written.
struct bl_ring_page {
  struct bl_ring_slot slots[BL_RING_PAGE];
};
BL_ASSERT(sizeof(struct bl_ring_page) == 1024);

// Of one instance with share b of the ring and share t wanted.
struct bl_coupled {
  __u32 keep;      // min(1, t / b) * BL_ALWAYS
  __u32 own;       // a draw that came here stays with this probability * BL_ALWAYS
  __u16 other;     // and goes to this place else
  __u16 instance;  // index
};
BL_ASSERT(sizeof(struct bl_coupled) == 12);

// Map "couplings", by bl_vip.table, swapped together with "dispatch_tables".
struct bl_coupling {
  __u32 ring_size;  // slots, a prime; 0: no ring, the dispatch table alone chooses
  __u32 count;      // of members; 0: no instance has a weight
  __u16 pages[BL_RING_PAGES];
  struct bl_coupled members[BL_MOST_COUPLED];
};
BL_ASSERT(sizeof(struct bl_coupling) == 8 + 2 * BL_RING_PAGES + 12 * BL_MOST_COUPLED);
BL_ASSERT(offsetof(struct bl_coupling, members) == 8 + 2 * BL_RING_PAGES);

// Two more halves that are independent of the first two.
BL_INLINE struct bl_flow_hash bl_hash_again(struct bl_flow_hash hash) {
  __u64 z = (BL_CAST(__u64, hash.of_class) << 32 | hash.of_member) + 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  z ^= z >> 31;
  struct bl_flow_hash two;
  two.of_class = BL_CAST(__u32, z >> 32);
  two.of_member = BL_CAST(__u32, z);
  return two;
}

// The flow's slot in the ring.
BL_INLINE __u32 bl_ring_slot_of(struct bl_flow_hash hash, __u32 ring_size) {
  return bl_scale(hash.of_class, ring_size);
}

// Place of the instance of a new flow, whose slot's first one is `first`. It is kept with
// probability min(1, t / b), else one is drawn from the deficits (t - b)+ by Walker's alias method.
// The three draws are independent of each other and of the slot. BL_MOST_COUPLED: none.
BL_INLINE __u32 bl_couple(const struct bl_coupled* members, __u32 count, __u32 first,
                          struct bl_flow_hash hash) {
  if (count == 0 || count > BL_MOST_COUPLED || first >= BL_MOST_COUPLED) return BL_MOST_COUPLED;
  if ((hash.of_member >> 1) < members[first].keep) return first;
  const struct bl_flow_hash again = bl_hash_again(hash);
  const __u32 place = bl_scale(again.of_class, count);
  if (place >= BL_MOST_COUPLED) return BL_MOST_COUPLED;
  return (again.of_member >> 1) < members[place].own ? place : members[place].other;
}
