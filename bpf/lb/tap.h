// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The tap: when it is on, some packets are shown to user space as they come and as they leave.
#pragma once

#include "bpf/lb/stages.h"

// Not 0 for a packet that is to be shown: its number.
BL_INLINE __u64 bl_draw(__u32* length) {
  const __u32 zero = 0;
  const struct bl_settings* is_set = bpf_map_lookup_elem(&settings, &zero);
  if (!is_set || is_set->capture_one_in == 0) return 0;
  if (bpf_get_prandom_u32() % is_set->capture_one_in != 0) return 0;
  *length = is_set->capture_length;
  return (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1;
}

static __attribute__((noinline)) int bl_show(struct xdp_md* ctx, struct bl_capture_event* event) {
  event->time_ns = bpf_ktime_get_ns();
  event->length = bl_end(ctx) - bl_data(ctx);
  if (event->captured > event->length) event->captured = event->length;
  const __u64 flags = BPF_F_CURRENT_CPU | (__u64)event->captured << 32;
  return bpf_perf_event_output(ctx, &captured, flags, event, sizeof(*event)) == 0;
}

// Where a packet with this verdict goes out.
BL_INLINE __u32 bl_way_out(__u32 way_in, const struct bl_packet* packet, __u8 action) {
  if (action == XDP_TX) return way_in;
  return action == XDP_REDIRECT ? packet->out_ifindex : 0;
}

BL_INLINE int bl_tap(struct xdp_md* ctx) {
  struct bl_packet packet;
  struct bl_capture_event event = {.instance = BL_MOST_INSTANCES, .counter = BL_COUNTERS};
  __u32 length = 0;
  event.number = bl_draw(&length);
  if (event.number) {
    event.captured = length;
    event.ifindex = ctx->ingress_ifindex;
    bl_show(ctx, &event);
  }
  const int verdict = bl_judge(ctx, &packet);
  const __u8 action = verdict & BL_ACTION;
  if (event.number) {
    event.captured = length;
    event.action = action;
    event.has_left = 1;
    event.ifindex = bl_way_out(event.ifindex, &packet, action);
    event.counter = bl_counter_of(verdict, &packet);
    if (packet.has_instance) event.instance = packet.instance;
    bl_show(ctx, &event);
  }
  return action;
}
