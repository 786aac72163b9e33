// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The life of a packet at the balancer: parsed, given an instance, forwarded.
#pragma once

#include "bpf/lb/forward.h"
#include "bpf/lb/icmp.h"
#include "bpf/lb/to_client.h"
#include "bpf/lib/parse.h"

BL_INLINE int bl_judge(struct xdp_md* ctx, struct bl_packet* packet) {
  int verdict = XDP_PASS;
  switch (bl_parse(ctx, packet)) {
    case BL_PARSED_FLOW:
      verdict = bl_flow(packet);
      break;
    case BL_PARSED_ICMP:
      verdict = bl_icmp(ctx, packet);
      break;
    case BL_PARSED_LATER_FRAGMENT:
      verdict = bl_later_fragment(packet);
      break;
    case BL_PARSED_REFUSED:
      verdict = bl_refused(packet, packet->reason);
      break;
    case BL_PARSED_OTHER:
      verdict = bl_pass();
      break;
  }
  if (verdict == BL_TO_CLIENT) return bl_to_client(ctx, packet);
  return verdict == BL_TO_INSTANCE ? bl_forward(ctx, packet) : verdict;
}

BL_INLINE int bl_balance(struct xdp_md* ctx, struct bl_packet* packet) {
  return bl_judge(ctx, packet) & BL_ACTION;
}
