// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The hash of a flow by which its instance is chosen.
#pragma once

#include "wire/lb.h"

BL_INLINE __u64 bl_join(__u32 high, __u32 low) { return BL_CAST(__u64, high) << 32 | low; }

// One round: an odd multiplier, and the high bits brought down to where the next one needs them.
BL_INLINE __u64 bl_stir(__u64 hash, __u64 word) {
  hash = (hash ^ word) * 0xbf58476d1ce4e5b9ULL;
  return hash ^ (hash >> 29);
}

// Equal for equal seeds on every machine of one byte order. The finalizer is SplitMix64's, so that
// both halves depend on every bit of the key and neither on the other.
BL_INLINE struct bl_flow_hash bl_hash_flow(const struct bl_flow_key* key, __u64 seed) {
  const __u32* source = key->source.word;
  const __u32* destination = key->destination.word;
  __u64 hash = seed;
  hash = bl_stir(hash, bl_join(source[0], destination[0]));
  if (key->family == BL_FAMILY_IPV6) {
    hash = bl_stir(hash, bl_join(source[1], destination[1]));
    hash = bl_stir(hash, bl_join(source[2], destination[2]));
    hash = bl_stir(hash, bl_join(source[3], destination[3]));
  }
  const __u32 ports = BL_CAST(__u32, key->source_port_be) << 16 | key->destination_port_be;
  hash = bl_stir(hash, bl_join(ports, BL_CAST(__u32, key->protocol) << 8 | key->family));
  hash = (hash ^ (hash >> 30)) * 0x94d049bb133111ebULL;
  hash ^= hash >> 31;
  struct bl_flow_hash two;
  two.of_class = BL_CAST(__u32, hash >> 32);
  two.of_member = BL_CAST(__u32, hash);
  return two;
}

// What stands for a flow among the newcomers, never 0. A client that does not know the seed cannot
// aim at another's; the set and the mark are equal for two flows by chance once in 2^50.
BL_INLINE __u64 bl_flow_mark(struct bl_flow_hash hash) {
  return (bl_join(hash.of_class, hash.of_member) >> BL_WAY_BITS | 1) << BL_WAY_BITS;
}

// Where it is looked for among `sets`, a power of two.
BL_INLINE __u32 bl_newcomer_set_of(struct bl_flow_hash hash, __u32 sets) {
  return (hash.of_class ^ hash.of_member >> 1) & (sets - 1);
}
