// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What a balancer tells an instance in a GUE header, and what the instance's program,
// bpf/lb/decap.bpf.c, knows of the others. docs/design/lb-lost-balancer.md.
#pragma once

#include "wire/lb.h"

// GUE variant 0. Its private data, `length` words of 4 bytes, is the address, of the outer family,
// of who may have the connection if the instance has not; 0: nobody else.
struct bl_gue {
  __u8 length;    // two bits of variant and one of control messages are 0
  __u8 protocol;  // IPPROTO_IPIP or IPPROTO_IPV6
  __u16 flags_be;
};
BL_ASSERT(sizeof(struct bl_gue) == 4);

enum { BL_MOST_PEERS = 1024 };

// Map "peers", by bl_balancer_key: how an instance's packets reach another one. The packet path
// makes an entry of zeroes for one that it needs and does not know; user space fills it in.
struct bl_peer {
  __u32 ifindex;
  __u8 mac[6];  // the next hop's; all 0: not known yet
  __u8 source_mac[6];
};
BL_ASSERT(sizeof(struct bl_peer) == 16);
BL_ASSERT(offsetof(struct bl_peer, source_mac) == 10);
