// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the parser finds in a packet, and how a program gets at the packet's bytes.
#pragma once

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include "wire/lb.h"

enum {
  BL_MOST_TAGS = 2,
  BL_FRESH_HOPS = 64,  // of what is sent anew
  BL_AF_INET = 2,
  BL_AF_INET6 = 10,
  BL_DO_NOT_FRAGMENT = 0x4000,
};

enum bl_parsed {
  BL_PARSED_OTHER,           // not for a balancer, or cut before its destination can be read
  BL_PARSED_FLOW,            // TCP or UDP with its ports
  BL_PARSED_ICMP,            // of the packet's own IP version
  BL_PARSED_LATER_FRAGMENT,  // no ports
  BL_PARSED_REFUSED,         // addresses are known; `reason` says what is wrong
};

enum { BL_TCP_FIN = 1, BL_TCP_SYN = 2, BL_TCP_RST = 4, BL_TCP_ACK = 16 };

// <linux/icmp.h> needs a C library, which kernel programs have not.
enum {
  BL_ICMP_ECHO_REPLY = 0,
  BL_ICMP_UNREACHABLE = 3,
  BL_ICMP_FRAGMENTATION_NEEDED = 4,  // a code of it
  BL_ICMP_ECHO = 8,
  BL_ICMP_TIME_EXCEEDED = 11,
  BL_ICMP_PARAMETER_PROBLEM = 12,
  BL_ICMPV6_UNREACHABLE = 1,
  BL_ICMPV6_TOO_BIG = 2,
  BL_ICMPV6_TIME_EXCEEDED = 3,
  BL_ICMPV6_PARAMETER_PROBLEM = 4,
  BL_ICMPV6_ECHO = 128,
  BL_ICMPV6_ECHO_REPLY = 129,
};

struct bl_icmp_header {
  __u8 type;
  __u8 code;
  __u16 check;
  __be32 mtu;  // of the two messages about it; RFC 1191's is the lower half
};

struct bl_vlan_tag {
  __be16 control;
  __be16 next_type;
};

struct bl_packet {
  struct bl_flow_key flow;
  __u32 ip_offset;         // of the IP header, from the packet's start
  __u32 transport_offset;  // from the IP header
  __u32 ip_length;         // what the IP header says, that header included
  __u32 fragment_id;
  __u8 is_fragment;
  __u8 is_error;  // ICMP; `flow` is the connection it quotes, as the client sends it
  __u8 tcp_flags;
  __u8 reason;   // enum bl_counter, of BL_PARSED_REFUSED
  __u8 counter;  // likewise, of a packet that goes on
  __u8 traffic_class;
  __u16 candidate;  // bl_connection.candidate
  __u8 is_first;    // the flow was just given its instance
  __u8 has_ports;   // of its own
  __u8 has_instance;
  __u32 instance;  // where it goes, once that is known; of an answer, whence it comes
  __u16 answer_port_be;
  __u32 out_ifindex;                        // of XDP_REDIRECT
  const struct bl_address* answer_address;  // the VIP's, of an answer of a NAT instance
};

// The packet's bytes. A pointer from before a helper changed the packet is refused by the verifier.
BL_INLINE void* bl_data(const struct xdp_md* ctx) { return (void*)(long)ctx->data; }
BL_INLINE void* bl_end(const struct xdp_md* ctx) { return (void*)(long)ctx->data_end; }

// The IP header, where `size` bytes of it are there; NULL where not.
BL_INLINE void* bl_ip(const struct xdp_md* ctx, const struct bl_packet* packet, __u32 size) {
  __u32 offset = packet->ip_offset;
  if (offset > ETH_HLEN + BL_MOST_TAGS * sizeof(struct bl_vlan_tag)) return NULL;
  void* ip = bl_data(ctx) + offset;
  return ip + size > bl_end(ctx) ? NULL : ip;
}
