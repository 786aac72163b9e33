// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The choice by the ring: coupled to the wanted shares for a new flow, the ring alone for a packet
// from the middle of a connection that this balancer does not know.
// docs/design/lb-lost-balancer.md.
#pragma once

#include "bpf/lb/vip.h"
#include "wire/ring.h"

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, BL_MOST_TABLES);
  __type(key, __u32);
  __type(value, struct bl_coupling);
} couplings SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, BL_MOST_RING_PAGES);
  __type(key, __u32);
  __type(value, struct bl_ring_page);
} ring_pages SEC(".maps");

BL_INLINE int bl_is_down(__u32 index) {
  const struct bl_instance* instance = bpf_map_lookup_elem(&instances, &index);
  return !instance || instance->state != BL_INSTANCE_UP;
}

// The VIP's coupling if it has a ring, else NULL.
BL_INLINE const struct bl_coupling* bl_find_coupling(const struct bl_vip* vip) {
  __u32 table = vip->table;
  const struct bl_coupling* coupling = bpf_map_lookup_elem(&couplings, &table);
  return coupling && coupling->ring_size ? coupling : NULL;
}

BL_INLINE const struct bl_ring_slot* bl_find_slot(const struct bl_coupling* coupling,
                                                  struct bl_flow_hash hash) {
  const __u32 slot = bl_ring_slot_of(hash, coupling->ring_size);
  const __u32 page_place = slot / BL_RING_PAGE;
  if (page_place >= BL_RING_PAGES) return NULL;
  __u32 index = coupling->pages[page_place];
  const struct bl_ring_page* page = bpf_map_lookup_elem(&ring_pages, &index);
  return page ? &page->slots[slot % BL_RING_PAGE] : NULL;
}

// Index of the instance at a place; BL_MOST_INSTANCES if there is none.
BL_INLINE __u32 bl_instance_at(const struct bl_coupling* coupling, __u32 place) {
  return place < BL_MOST_COUPLED ? coupling->members[place].instance : BL_MOST_INSTANCES;
}

BL_INLINE __u32 bl_choose_new(const struct bl_vip* vip, struct bl_flow_hash hash) {
  const struct bl_coupling* coupling = bl_find_coupling(vip);
  if (!coupling) return bl_choose(vip, hash);
  const struct bl_ring_slot* slot = bl_find_slot(coupling, hash);
  if (!slot) return BL_MOST_INSTANCES;
  return bl_instance_at(coupling, bl_couple(coupling->members, coupling->count, slot->first, hash));
}

// Index + 1 of who else may have a connection that went by the ring to `chosen`: who would be
// chosen now, else the slot's other one; 0 if there is nobody.
BL_INLINE __u32 bl_candidate(const struct bl_vip* vip, struct bl_flow_hash hash, __u32 chosen) {
  const struct bl_coupling* coupling = bl_find_coupling(vip);
  if (!coupling) return 0;
  const struct bl_ring_slot* slot = bl_find_slot(coupling, hash);
  if (!slot) return 0;
  __u32 other =
      bl_instance_at(coupling, bl_couple(coupling->members, coupling->count, slot->first, hash));
  if (other == chosen || other >= BL_MOST_INSTANCES) other = bl_instance_at(coupling, slot->second);
  return other == chosen || other >= BL_MOST_INSTANCES ? 0 : other + 1;
}

// For what is in the middle of a connection: no weight has a say, but an instance that is down has
// no connection left.
BL_INLINE __u32 bl_choose_known_elsewhere(const struct bl_vip* vip, struct bl_flow_hash hash) {
  const struct bl_coupling* coupling = bl_find_coupling(vip);
  if (!coupling) return bl_choose(vip, hash);
  const struct bl_ring_slot* slot = bl_find_slot(coupling, hash);
  if (!slot) return BL_MOST_INSTANCES;
  const __u32 first = bl_instance_at(coupling, slot->first);
  return bl_is_down(first) ? bl_instance_at(coupling, slot->second) : first;
}
