// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The way back of NAT: is a packet an instance's answer to a client of its VIP?
#pragma once

#include "bpf/lb/connection.h"

// The instance's half of TCP. It never takes back an RST: the instance may have sent before it
// heard of it.
BL_INLINE void bl_advance_by_answer(struct bl_connection* connection,
                                    const struct bl_packet* packet) {
  if (packet->flow.protocol != IPPROTO_TCP) return;
  if (packet->tcp_flags & BL_TCP_RST)
    connection->state = BL_CONNECTION_RESET;
  else if (packet->tcp_flags & BL_TCP_FIN && connection->state == BL_CONNECTION_OPEN)
    connection->state = BL_CONNECTION_CLOSING;
}

// Whether the packet is of a flow that this VIP sent to this instance; then it goes to the client.
BL_INLINE int bl_answers_for(struct bl_packet* packet, const struct bl_nat_source* source) {
  struct bl_flow_key flow = {
      .source = packet->flow.destination,
      .destination = source->address,
      .source_port_be = packet->flow.destination_port_be,
      .destination_port_be = source->port_be ? source->port_be : packet->flow.source_port_be,
      .protocol = packet->flow.protocol,
      .family = packet->flow.family};
  struct bl_connection* connection = bpf_map_lookup_elem(&connections, &flow);
  const __u32 instance = connection
                             ? connection->instance
                             : (bl_find_newcomer(bl_hash_flow(&flow, hash_seed)) & BL_WAY_INSTANCE);
  if (instance != source->instance) return 0;
  if (connection && !packet->is_error) {
    bl_seen(connection);
    bl_advance_by_answer(connection, packet);
  }
  bl_to_instance(packet, instance);
  packet->answer_address = &source->address;
  packet->answer_port_be = source->port_be;
  return 1;
}

// By port, then of all ports; likewise of who had them before. What is no flow's that went to the
// instance is not translated: it may be the answer to one who asked the instance itself, as health
// checks do.
BL_INLINE int bl_find_answer(struct bl_packet* packet) {
  struct bl_vip_key key = {.address = packet->flow.source, .protocol = packet->flow.protocol};
#pragma clang loop unroll(disable)
  for (int i = 0; i < 4; ++i) {
    key.port_be = i & 1 ? 0 : packet->flow.source_port_be;
    key.family = packet->flow.family | (i & 2 ? BL_FORMER_SOURCE : 0);
    const struct bl_nat_source* source = bpf_map_lookup_elem(&nat_sources, &key);
    if (source && bl_answers_for(packet, source)) return BL_TO_CLIENT;
  }
  return bl_pass();
}
