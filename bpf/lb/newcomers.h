// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Flows of which one packet was seen: sets of a few places each, which new flows take in turn. A
// flood costs the same time as any other traffic, and no memory.
#pragma once

#include "bpf/lb/maps.h"
#include "wire/flow_hash.h"

BL_INLINE struct bl_newcomer_set* bl_find_set(struct bl_flow_hash hash) {
  __u32 index = bl_newcomer_set_of(hash, newcomer_sets);
  return bpf_map_lookup_elem(&newcomers, &index);
}

// The word of the flow if there is one, else 0.
BL_INLINE __u64 bl_find_place(struct bl_newcomer_set* set, __u64 mark) {
  __u64 found = 0;
#pragma clang loop unroll(full)
  for (int i = 0; i < BL_NEWCOMER_PLACES; ++i) {
    const __u64 word = *(volatile __u64*)&set->places[i];
    if ((word ^ mark) >> BL_WAY_BITS == 0) found = word;
  }
  return found;
}

// Whether a flow of the set may be a connection. Most first packets are spared the look into the
// large table.
BL_INLINE int bl_may_be_connection(struct bl_flow_hash hash) {
  const struct bl_newcomer_set* set = bl_find_set(hash);
  return !set || *(volatile __u32*)&set->connections > 0;
}

BL_INLINE void bl_count_connection(struct bl_flow_hash hash, __u32 more) {
  struct bl_newcomer_set* set = bl_find_set(hash);
  if (set) __sync_fetch_and_add(&set->connections, more);
}

BL_INLINE __u32 bl_way_of(__u64 word) {
  return word ? word & ((1 << BL_WAY_BITS) - 1) : BL_MOST_INSTANCES;
}

// The way of a flow that was seen; BL_MOST_INSTANCES if it was not.
BL_INLINE __u32 bl_find_newcomer(struct bl_flow_hash hash) {
  struct bl_newcomer_set* set = bl_find_set(hash);
  return set ? bl_way_of(bl_find_place(set, bl_flow_mark(hash))) : BL_MOST_INSTANCES;
}

// The way of a flow that was seen; else BL_MOST_INSTANCES, and `way` is its own from now on.
BL_INLINE __u32 bl_meet_newcomer(struct bl_flow_hash hash, __u32 way) {
  const __u64 mark = bl_flow_mark(hash);
  struct bl_newcomer_set* set = bl_find_set(hash);
  if (!set) return BL_MOST_INSTANCES;
  const __u64 found = bl_find_place(set, mark);
  if (found) return bl_way_of(found);
  __u32 place = (__u32)__sync_fetch_and_add(&set->turn, 1) % BL_NEWCOMER_PLACES;
  asm volatile("" : "+r"(place));  // the verifier knows no remainders
  if (place >= BL_NEWCOMER_PLACES) return BL_MOST_INSTANCES;
  *(volatile __u64*)&set->places[place] = mark | way;
  return BL_MOST_INSTANCES;
}

// If another flow takes the place meanwhile, that one stays.
BL_INLINE void bl_forget_newcomer(struct bl_flow_hash hash) {
  const __u64 mark = bl_flow_mark(hash);
  struct bl_newcomer_set* set = bl_find_set(hash);
  if (!set) return;
  for (int i = 0; i < BL_NEWCOMER_PLACES; ++i) {
    const __u64 word = *(volatile __u64*)&set->places[i];
    if ((word ^ mark) >> BL_WAY_BITS == 0) __sync_val_compare_and_swap(&set->places[i], word, 0);
  }
}
