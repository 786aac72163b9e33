// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The two tables of flows. The first packet of a flow makes a newcomer, a second one that proves
// the client has heard the instance makes a connection; so no flood of first packets touches
// connections.
#pragma once

#include "bpf/lb/newcomers.h"
#include "bpf/lb/ring.h"

// The clock moves by milliseconds: most packets find it where it was and do not write.
BL_INLINE void bl_seen(struct bl_connection* connection) {
  const __u64 now_ns = bpf_ktime_get_coarse_ns();
  if (connection->last_seen_ns != now_ns) connection->last_seen_ns = now_ns;
}

// Whether what is open at the instance stays there.
BL_INLINE int bl_stays(__u32 instance) {
  if (!bl_is_down(instance)) return 1;
  bl_count(BL_EVENT_moved_from_down);
  return 0;
}

BL_INLINE int bl_opens(const struct bl_packet* packet) {
  return packet->flow.protocol == IPPROTO_TCP &&
         (packet->tcp_flags & (BL_TCP_SYN | BL_TCP_ACK)) == BL_TCP_SYN;
}

// The client's half of TCP; the instance's answers do not pass here. An RST that was forged is
// taken back by the next packet of the real client.
BL_INLINE void bl_advance(struct bl_connection* connection, const struct bl_packet* packet) {
  if (packet->flow.protocol != IPPROTO_TCP) return;
  if (packet->tcp_flags & BL_TCP_RST)
    connection->state = BL_CONNECTION_RESET;
  else if (packet->tcp_flags & BL_TCP_FIN)
    connection->state = BL_CONNECTION_CLOSING;
  else if (connection->state == BL_CONNECTION_RESET)
    connection->state = BL_CONNECTION_OPEN;
}

// The flow's entry is right, unless the client has closed it and begins anew, or its instance is
// down. Then the entry goes.
BL_INLINE int bl_still_holds(const struct bl_connection* connection,
                             const struct bl_packet* packet) {
  if (bl_opens(packet) && connection->state >= BL_CONNECTION_CLOSING) {
    bl_count(BL_EVENT_port_reused);
    return 0;
  }
  return bl_stays(connection->instance);
}

BL_INLINE void bl_open(const struct bl_packet* packet, struct bl_flow_hash hash) {
  struct bl_connection connection = {.last_seen_ns = bpf_ktime_get_coarse_ns(),
                                     .instance = packet->instance,
                                     .candidate = packet->candidate,
                                     .state = BL_CONNECTION_OPEN};
  bl_advance(&connection, packet);
  bl_count_connection(hash, 1);
  if (bpf_map_update_elem(&connections, &packet->flow, &connection, BPF_NOEXIST)) {
    bl_count_connection(hash, -1);
    bl_count(BL_EVENT_table_full);
    return;
  }
  bl_count(BL_EVENT_opened);
  bl_forget_newcomer(hash);
}

BL_INLINE void bl_close(const struct bl_packet* packet, struct bl_flow_hash hash) {
  if (bpf_map_delete_elem(&connections, &packet->flow) == 0) bl_count_connection(hash, -1);
}

// What answers the instance: any datagram after the first, any segment with an ACK but no SYN. An
// RST ends a flow that never was one.
BL_INLINE int bl_answers(const struct bl_packet* packet) {
  if (packet->flow.protocol != IPPROTO_TCP) return 1;
  return (packet->tcp_flags & (BL_TCP_SYN | BL_TCP_RST | BL_TCP_ACK)) == BL_TCP_ACK;
}
