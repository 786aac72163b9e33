// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Is a packet for a VIP, and which instance does a new flow of it get?
#pragma once

#include "bpf/lb/maps.h"
#include "wire/flow_hash.h"

// The VIP of a flow: its port's, else the one of all ports; NULL if neither.
BL_INLINE struct bl_vip* bl_find_vip(const struct bl_flow_key* flow) {
  struct bl_vip_key key = {.address = flow->destination,
                           .port_be = flow->destination_port_be,
                           .protocol = flow->protocol,
                           .family = flow->family};
  struct bl_vip* vip = bpf_map_lookup_elem(&vips, &key);
  if (vip) return vip;
  key.port_be = 0;
  return bpf_map_lookup_elem(&vips, &key);
}

BL_INLINE int bl_is_vip_address(const struct bl_flow_key* flow) {
  struct bl_vip_key key = {.address = flow->destination, .family = flow->family};
  return bpf_map_lookup_elem(&vips, &key) != NULL;
}

// What cannot be balanced is dropped where it is sent to a VIP, and else none of our business.
BL_INLINE int bl_refused(const struct bl_packet* packet, __u32 reason) {
  return bl_is_vip_address(&packet->flow) ? bl_drop(reason) : bl_pass();
}

// Index of the instance; BL_MOST_INSTANCES if the VIP has none.
BL_INLINE __u32 bl_choose(const struct bl_vip* vip, struct bl_flow_hash hash) {
  __u32 slot = vip->table;
  struct bl_dispatch_table* table = bpf_map_lookup_elem(&dispatch_tables, &slot);
  if (!table) return BL_MOST_INSTANCES;
  const __u32 count = table->class_count;
  if (count == 0 || count > BL_MOST_CLASSES) return BL_MOST_INSTANCES;
  const __u32 member = bl_dispatch(table->classes, count, table->total, hash);
  if (member >= BL_MOST_MEMBERS) return BL_MOST_INSTANCES;
  return table->members[member];
}
