// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Flows of which one packet was seen: sets of a few entries each, of which a new flow takes the
// longest unused. A flood costs the same time as any other traffic, and no memory.
#pragma once

#include "bpf/lb/maps.h"
#include "wire/flow_hash.h"

BL_INLINE struct bl_locked_set* bl_find_set(struct bl_flow_hash hash) {
  __u32 index = bl_newcomer_set_of(hash, newcomer_sets);
  return bpf_map_lookup_elem(&newcomers, &index);
}

BL_INLINE __u32 bl_tick(void) { return bpf_ktime_get_coarse_ns() >> 20; }

// The instance of a flow that was seen; BL_MOST_INSTANCES if it was not.
BL_INLINE __u32 bl_find_newcomer(struct bl_flow_hash hash) {
  const __u64 flow = bl_fingerprint(hash);
  struct bl_locked_set* set = bl_find_set(hash);
  __u32 found = BL_MOST_INSTANCES;
  if (!set) return found;
  bpf_spin_lock(&set->lock);
  for (int i = 0; i < BL_NEWCOMER_WAYS; ++i) {
    if (set->ways[i].flow == flow) found = set->ways[i].instance;
  }
  bpf_spin_unlock(&set->lock);
  return found;
}

// The instance of a flow that was seen, now again; else BL_MOST_INSTANCES, and it has `instance`
// from now on.
BL_INLINE __u32 bl_meet_newcomer(struct bl_flow_hash hash, __u32 instance) {
  const __u64 flow = bl_fingerprint(hash);
  const __u32 now = bl_tick();
  struct bl_locked_set* set = bl_find_set(hash);
  __u32 found = BL_MOST_INSTANCES;
  __u32 oldest = 0;
  int place = 0;
  if (!set) return found;
  bpf_spin_lock(&set->lock);
#pragma clang loop unroll(full)
  for (int i = 0; i < BL_NEWCOMER_WAYS; ++i) {
    const struct bl_newcomer* way = &set->ways[i];
    // The flow's own place is as good as the oldest.
    __u32 age = way->flow == 0 ? ~0U - 1 : now - way->seen;
    if (way->flow == flow) {
      found = way->instance;
      age = ~0U;
    }
    if (age < oldest) continue;
    oldest = age;
    place = i;
  }
  const __u32 kept = found == BL_MOST_INSTANCES ? instance : found;
#pragma clang loop unroll(full)
  for (int i = 0; i < BL_NEWCOMER_WAYS; ++i) {
    if (i != place) continue;
    set->ways[i].flow = flow;
    set->ways[i].instance = kept;
    set->ways[i].seen = now;
  }
  bpf_spin_unlock(&set->lock);
  return found;
}

BL_INLINE void bl_forget_newcomer(struct bl_flow_hash hash) {
  const __u64 flow = bl_fingerprint(hash);
  struct bl_locked_set* set = bl_find_set(hash);
  if (!set) return;
  bpf_spin_lock(&set->lock);
  for (int i = 0; i < BL_NEWCOMER_WAYS; ++i) {
    if (set->ways[i].flow == flow) set->ways[i].flow = 0;
  }
  bpf_spin_unlock(&set->lock);
}
