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

BL_INLINE const struct bl_nat_source* bl_find_source(const struct bl_flow_key* flow) {
  struct bl_vip_key key = {.address = flow->source,
                           .port_be = flow->source_port_be,
                           .protocol = flow->protocol,
                           .family = flow->family};
  const struct bl_nat_source* source = bpf_map_lookup_elem(&nat_sources, &key);
  if (source) return source;
  key.port_be = 0;
  return bpf_map_lookup_elem(&nat_sources, &key);
}

// What is no flow's that went to the instance is not translated: it may be the answer to one who
// asked the instance itself, as health checks do.
BL_INLINE int bl_find_answer(struct bl_packet* packet) {
  const struct bl_nat_source* source = bl_find_source(&packet->flow);
  if (!source) return bl_pass();
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
  if (instance != source->instance) return bl_pass();
  if (connection && !packet->is_error) {
    bl_seen(connection);
    bl_advance_by_answer(connection, packet);
  }
  bl_to_instance(packet, instance);
  packet->answer_address = &source->address;
  packet->answer_port_be = source->port_be;
  return BL_TO_CLIENT;
}
