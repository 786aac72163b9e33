// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The maps and the settings of the load balancer; their shapes are in src/wire/lb.h.
#pragma once

#include "bpf/lib/packet.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, BL_MOST_VIP_KEYS);
  __type(key, struct bl_vip_key);
  __type(value, struct bl_vip);
} vips SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, BL_MOST_TABLES);
  __type(key, __u32);
  __type(value, struct bl_dispatch_table);
} dispatch_tables SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, BL_MOST_INSTANCES);
  __type(key, __u32);
  __type(value, struct bl_instance);
} instances SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 2 * BL_MOST_INSTANCES);  // likewise
  __type(key, struct bl_vip_key);
  __type(value, struct bl_nat_source);
} nat_sources SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, BL_MOST_INSTANCES);
  __type(key, __u32);
  __type(value, struct bl_owner);
} owners SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct bl_settings);
} settings SEC(".maps");

// One ring a CPU; libbpf fills in how many.
struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, sizeof(__u32));
} captured SEC(".maps");

// For the next process: hash_seed, and what stands for the layout of all maps.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 2);
  __type(key, __u32);
  __type(value, __u64);
} seed SEC(".maps");

// A plain hash: an LRU map may evict live entries long before it is full.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, BL_CONNECTIONS);
  __type(key, struct bl_flow_key);
  __type(value, struct bl_connection);
} connections SEC(".maps");

// A flood fills this one, and only this one. User space counts in it too.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, BL_NEWCOMER_SETS);
  __type(key, __u32);
  __type(value, struct bl_newcomer_set);
} newcomers SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, BL_FRAGMENTS);
  __type(key, struct bl_fragment_key);
  __type(value, struct bl_fragment);
} fragments SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, BL_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} counters SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, BL_MOST_INSTANCES);
  __type(key, __u32);
  __type(value, struct bl_traffic);
} instance_counters SEC(".maps");

struct bl_budget {
  __u64 second;
  __u64 spent;
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct bl_budget);
} error_budget SEC(".maps");

// Set before the program is loaded.
const volatile __u64 hash_seed = 0;
const volatile __u32 newcomer_sets = BL_NEWCOMER_SETS;  // a power of two
const volatile __u32 errors_per_second = BL_ERRORS_PER_SECOND;
const volatile __u8 echo_is_answered = 1;

// A stage's verdict: one of these, or XDP's action, and above it one more than the counter that
// says why, if bl_packet.counter does not.
enum {
  BL_TO_INSTANCE = -1,  // bl_packet.instance
  BL_TO_CLIENT = -2,    // as from bl_packet.answer_address
  BL_ACTION = 0xff,
  BL_VERDICT_COUNTER = 8,
};

BL_INLINE int bl_verdict(int action, __u32 counter) {
  return (int)(counter + 1) << BL_VERDICT_COUNTER | action;
}

BL_INLINE __u32 bl_counter_of(int verdict, const struct bl_packet* packet) {
  const __u32 said = (__u32)verdict >> BL_VERDICT_COUNTER;
  return said ? said - 1 : packet->counter;
}

BL_INLINE int bl_to_instance(struct bl_packet* packet, __u32 instance) {
  packet->instance = instance;
  packet->has_instance = 1;
  return BL_TO_INSTANCE;
}

BL_INLINE void bl_count(__u32 counter) {
  __u64* value = bpf_map_lookup_elem(&counters, &counter);
  if (value) ++*value;
}

// Of a packet that goes on.
BL_INLINE void bl_note(struct bl_packet* packet, __u8 counter) {
  packet->counter = counter;
  bl_count(counter);
}

BL_INLINE int bl_drop(__u32 reason) {
  bl_count(reason);
  return bl_verdict(XDP_DROP, reason);
}

BL_INLINE int bl_pass(void) {
  bl_count(BL_EVENT_passed);
  return bl_verdict(XDP_PASS, BL_EVENT_passed);
}
