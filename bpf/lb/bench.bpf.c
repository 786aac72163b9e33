// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The packet path as a test-run with `repeat` can measure it: each program leaves the packet as it
// found it. `restore` alone is what that costs.
#include "bpf/lb/tap.h"

enum { BL_KEPT = 54 };  // Ethernet and the larger IP header

BL_INLINE int bl_keep(struct xdp_md* ctx, __u8* kept) {
  void* data = bl_data(ctx);
  if (data + BL_KEPT > bl_end(ctx)) return 0;
  __builtin_memcpy(kept, data, BL_KEPT);
  return 1;
}

// `overhead` is a constant in each call.
BL_INLINE int bl_restore(struct xdp_md* ctx, const __u8* kept, int overhead) {
  if (overhead && bpf_xdp_adjust_head(ctx, overhead)) return XDP_ABORTED;
  void* data = bl_data(ctx);
  if (data + BL_KEPT > bl_end(ctx)) return XDP_ABORTED;
  __builtin_memcpy(data, kept, BL_KEPT);
  return XDP_TX;
}

BL_INLINE int bl_measure(struct xdp_md* ctx, int overhead, int is_balanced) {
  struct bl_packet packet;
  __u8 kept[BL_KEPT];
  if (!bl_keep(ctx, kept)) return XDP_ABORTED;
  if (is_balanced) {
    if (bl_balance(ctx, &packet) != XDP_TX) return XDP_ABORTED;
  } else if (overhead && bpf_xdp_adjust_head(ctx, -overhead)) {
    return XDP_ABORTED;
  }
  return bl_restore(ctx, kept, overhead);
}

SEC("xdp")
int nothing(struct xdp_md* ctx) { return XDP_TX; }

// What every packet pays for the tap while it is off.
SEC("xdp")
int tap_off(struct xdp_md* ctx) {
  __u32 length;
  return bl_draw(&length) ? XDP_ABORTED : XDP_TX;
}

SEC("xdp")
int parse(struct xdp_md* ctx) {
  struct bl_packet packet;
  const enum bl_parsed parsed = bl_parse(ctx, &packet);
  asm volatile("" : : "r"(&packet) : "memory");  // all that was read is wanted
  return parsed == BL_PARSED_FLOW ? XDP_TX : XDP_ABORTED;
}

SEC("xdp")
int restore(struct xdp_md* ctx) { return bl_measure(ctx, 0, 0); }

SEC("xdp")
int restore_ipip(struct xdp_md* ctx) { return bl_measure(ctx, sizeof(struct iphdr), 0); }

SEC("xdp")
int balance(struct xdp_md* ctx) { return bl_measure(ctx, 0, 1); }

SEC("xdp")
int balance_ipip(struct xdp_md* ctx) { return bl_measure(ctx, sizeof(struct iphdr), 1); }

__u32 flows = 0;

// Client number `flow`: a bijection, so that each is another one, from all over the table.
BL_INLINE int bl_measure_of(struct xdp_md* ctx, __u32 flow) {
  struct iphdr* ip = bl_data(ctx) + ETH_HLEN;
  if ((void*)(ip + 1) > bl_end(ctx)) return XDP_ABORTED;
  ip->saddr = flow * 0x9e3779b1;
  return bl_measure(ctx, 0, 1);
}

// Each run is another client's first packet.
SEC("xdp")
int balance_new(struct xdp_md* ctx) { return bl_measure_of(ctx, 0x80000000 + ++flows); }

__u32 opened = 0;

// Two runs open a connection.
SEC("xdp")
int balance_open(struct xdp_md* ctx) { return bl_measure_of(ctx, opened++ >> 1); }

__u32 asked = 0;

// Each run is a packet of another one of the connections opened.
SEC("xdp")
int balance_any(struct xdp_md* ctx) {
  asked += 0x5851f42d;
  return bl_measure_of(ctx, bl_scale(asked, opened >> 1));
}

char _license[] SEC("license") = "Dual BSD/GPL";
