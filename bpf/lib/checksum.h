// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The Internet checksum (RFC 1071), whole and by what changed (RFC 1624).
#pragma once

#include "bpf/lib/packet.h"

BL_INLINE __u16 bl_fold(__u64 sum) {
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return ~sum;
}

// Of a header without options whose `check` is 0.
BL_INLINE __u16 bl_ipv4_checksum(const struct iphdr* ip) {
  const __u16* words = (const __u16*)ip;
  __u64 sum = 0;
#pragma clang loop unroll(full)
  for (unsigned i = 0; i < sizeof(*ip) / sizeof(*words); ++i) sum += words[i];
  return bl_fold(sum);
}

BL_INLINE void bl_change_word(__u16* check, __u16 before, __u16 after) {
  *check = bl_fold((__u64)(__u16) ~*check + (__u16)~before + after);
}

// One hop less. 0 where none is left: the packet must not go on.
BL_INLINE int bl_take_hop(struct iphdr* ip) {
  if (ip->ttl <= 1) return 0;
  __u32 check = ip->check;
  check += bpf_htons(0x0100);
  ip->check = check + (check >= 0xffff);
  --ip->ttl;
  return 1;
}
