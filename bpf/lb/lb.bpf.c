// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The load balancer's packet path: what is for a VIP goes to its instance, all else to the kernel.
// Start here, then stages.h and flow.h.
#include "bpf/lb/tap.h"

SEC("xdp")
int lb(struct xdp_md* ctx) { return bl_tap(ctx); }

char _license[] SEC("license") = "Dual BSD/GPL";
