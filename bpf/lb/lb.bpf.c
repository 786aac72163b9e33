// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The load balancer's packet path: what is for a VIP goes to its instance, all else to the kernel.
// Start here, then flow.h.
#include "bpf/lb/stages.h"

SEC("xdp")
int lb(struct xdp_md* ctx) {
  struct bl_packet packet;
  return bl_balance(ctx, &packet);
}

char _license[] SEC("license") = "Dual BSD/GPL";
