// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The way of a TCP or UDP packet: known connection, else newcomer, else a choice by the table.
#pragma once

#include "bpf/lb/answer.h"
#include "bpf/lb/connection.h"

BL_INLINE void bl_fragment_key_of(const struct bl_packet* packet, struct bl_fragment_key* key) {
  __builtin_memset(key, 0, sizeof(*key));
  key->source = packet->flow.source;
  key->destination = packet->flow.destination;
  key->id_be = packet->fragment_id;
  // RFC 791 puts the pieces together by protocol too, RFC 8200 does not.
  key->protocol = packet->flow.family == BL_FAMILY_IPV4 ? packet->flow.protocol : 0;
  key->family = packet->flow.family;
}

// The first fragment shows the others the way.
BL_INLINE void bl_lead_fragments(const struct bl_packet* packet, int verdict) {
  struct bl_fragment_key key;
  struct bl_fragment fragment = {.instance = packet->instance};
  if (verdict == BL_TO_CLIENT) {
    fragment.is_answer = 1;
    fragment.address = *packet->answer_address;
  }
  bl_fragment_key_of(packet, &key);
  bpf_map_update_elem(&fragments, &key, &fragment, BPF_ANY);
}

BL_INLINE int bl_later_fragment(struct bl_packet* packet) {
  struct bl_fragment_key key;
  bl_fragment_key_of(packet, &key);
  const struct bl_fragment* fragment = bpf_map_lookup_elem(&fragments, &key);
  if (!fragment) return bl_refused(packet, BL_DROP_fragment_unknown);
  bl_note(packet, BL_EVENT_fragment);
  bl_to_instance(packet, fragment->instance);
  if (!fragment->is_answer) return BL_TO_INSTANCE;
  packet->answer_address = &fragment->address;
  return BL_TO_CLIENT;
}

BL_INLINE int bl_known(struct bl_packet* packet, struct bl_connection* connection) {
  bl_note(packet, BL_EVENT_known);
  bl_seen(connection);
  bl_advance(connection, packet);
  packet->candidate = connection->candidate;
  return bl_to_instance(packet, connection->instance);
}

BL_INLINE int bl_newcomer(struct bl_packet* packet, struct bl_flow_hash hash) {
  bl_note(packet, BL_EVENT_newcomer);
  if (bl_answers(packet)) bl_open(packet, hash);
  return BL_TO_INSTANCE;
}

BL_INLINE int bl_first(struct bl_packet* packet, int is_late) {
  bl_note(packet, BL_EVENT_chosen);
  if (is_late) bl_count(BL_EVENT_chosen_late);
  packet->is_first = 1;
  return BL_TO_INSTANCE;
}

// A flow that is no connection: seen before, or new. An RST ends one that never was.
BL_INLINE int bl_unknown(struct bl_packet* packet, const struct bl_vip* vip) {
  const struct bl_flow_hash hash = bl_hash_flow(&packet->flow, hash_seed);
  const int is_late = packet->flow.protocol == IPPROTO_TCP && !bl_opens(packet);
  const __u32 chosen = is_late ? bl_choose_known_elsewhere(vip, hash) : bl_choose_new(vip, hash);
  const int is_kept = chosen < BL_MOST_INSTANCES && !(packet->tcp_flags & BL_TCP_RST);
  __u32 way = chosen;
  if (is_late && is_kept) way |= bl_candidate(vip, hash, chosen) << BL_WAY_CANDIDATE;
  const __u32 found = is_kept ? bl_meet_newcomer(hash, way) : bl_find_newcomer(hash);
  const __u32 known = found & BL_WAY_INSTANCE;
  if (known < BL_MOST_INSTANCES) {
    if (bl_stays(known)) {
      bl_to_instance(packet, known);
      packet->candidate = found >> BL_WAY_CANDIDATE;
      return bl_newcomer(packet, hash);
    }
    bl_forget_newcomer(hash);
    if (is_kept) bl_meet_newcomer(hash, way);
  }
  if (chosen >= BL_MOST_INSTANCES) return bl_drop(BL_DROP_no_instance);
  bl_to_instance(packet, chosen);
  packet->candidate = way >> BL_WAY_CANDIDATE;
  return bl_first(packet, is_late);
}

// A known connection costs one look into a hash: the VIP's is needed for others only.
BL_INLINE int bl_find(struct bl_packet* packet) {
  struct bl_connection* connection = NULL;
  if (!bl_opens(packet) || bl_may_be_connection(bl_hash_flow(&packet->flow, hash_seed)))
    connection = bpf_map_lookup_elem(&connections, &packet->flow);
  if (connection) {
    if (bl_still_holds(connection, packet)) return bl_known(packet, connection);
    bl_close(packet, bl_hash_flow(&packet->flow, hash_seed));
  }
  const struct bl_vip* vip = bl_find_vip(&packet->flow);
  if (!vip) return bl_find_answer(packet);
  return bl_unknown(packet, vip);
}

BL_INLINE int bl_flow(struct bl_packet* packet) {
  const int verdict = bl_find(packet);
  if (packet->is_fragment && verdict < 0) bl_lead_fragments(packet, verdict);
  return verdict;
}
