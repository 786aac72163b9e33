// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Tells the sender that its packet does not fit, or has no hops left: RFC 792 and 1191 for IPv4,
// RFC 4443, 3.2 and 3.3 for IPv6. The error is the packet itself, cut, with its addresses swapped.
#pragma once

#include "bpf/lb/maps.h"
#include "bpf/lib/checksum.h"

enum {
  BL_QUOTE_IPV4 = 548,   // 576 in all (RFC 1812, 4.3.2.3)
  BL_QUOTE_IPV6 = 1232,  // 1280 in all
  BL_LEAST_MTU_IPV6 = 1280,
};

BL_INLINE int bl_may_answer(void) {
  const __u32 zero = 0;
  struct bl_budget* budget = bpf_map_lookup_elem(&error_budget, &zero);
  if (!budget) return 0;
  const __u64 second = bpf_ktime_get_coarse_ns() >> 30;
  if (budget->second != second) {
    budget->second = second;
    budget->spent = 0;
  }
  return budget->spent++ < errors_per_second;
}

// Plus what stands from `at` to the packet's end, `most` bytes at most.
BL_INLINE __u64 bl_sum(const struct xdp_md* ctx, void* at, __u32 most, __u64 sum) {
  void* end = bl_end(ctx);
  for (__u32 done = 0; done < most; done += sizeof(__u32)) {
    __u32* word = at + done;
    if ((void*)(word + 1) > end) break;
    sum += *word;
  }
  return sum;
}

// How much is quoted: whole words, for the sum.
BL_INLINE __u32 bl_quote(const struct bl_packet* packet, __u32 most) {
  return packet->ip_length < most ? packet->ip_length & ~3U : most;
}

// Leaves `quote` bytes from the IP header on, puts `head` bytes before them, and writes the
// Ethernet header and tags back with the addresses swapped.
BL_INLINE int bl_make_room(struct xdp_md* ctx, const struct bl_packet* packet, __u32 quote,
                           __u32 head) {
  const long length = bl_end(ctx) - bl_data(ctx);
  const long wanted = packet->ip_offset + quote;
  struct {
    struct ethhdr ethernet;
    struct bl_vlan_tag tags[BL_MOST_TAGS];
  } before;
  if (wanted > length || bpf_xdp_adjust_tail(ctx, wanted - length)) return 0;
  void* data = bl_data(ctx);
  if (data + sizeof(before) > bl_end(ctx)) return 0;
  __builtin_memcpy(&before, data, sizeof(before));
  if (bpf_xdp_adjust_head(ctx, -(int)head)) return 0;
  data = bl_data(ctx);
  if (data + sizeof(before) > bl_end(ctx)) return 0;
  __builtin_memcpy(data, before.ethernet.h_source, ETH_ALEN);
  __builtin_memcpy(data + ETH_ALEN, before.ethernet.h_dest, ETH_ALEN);
  __builtin_memcpy(data + 2 * ETH_ALEN, (void*)&before + 2 * ETH_ALEN,
                   sizeof(before) - 2 * ETH_ALEN);
  return 1;
}

// `mtu` is what the sender may use; 0 says that its hops are used up.
BL_INLINE int bl_error_ipv4(struct xdp_md* ctx, const struct bl_packet* packet, __u32 mtu) {
  struct {
    struct iphdr ip;
    struct bl_icmp_header icmp;
  }* error;
  const __u32 quote = bl_quote(packet, BL_QUOTE_IPV4);
  if (!bl_make_room(ctx, packet, quote, sizeof(*error))) return XDP_DROP;
  error = bl_ip(ctx, packet, sizeof(*error));
  if (!error) return XDP_DROP;
  __builtin_memset(error, 0, sizeof(*error));
  error->ip.version = 4;
  error->ip.ihl = 5;
  error->ip.tot_len = bpf_htons(sizeof(*error) + quote);
  error->ip.ttl = BL_FRESH_HOPS;
  error->ip.protocol = IPPROTO_ICMP;
  error->ip.saddr = packet->flow.destination.word[0];
  error->ip.daddr = packet->flow.source.word[0];
  error->ip.check = bl_ipv4_checksum(&error->ip);
  error->icmp.type = mtu ? BL_ICMP_UNREACHABLE : BL_ICMP_TIME_EXCEEDED;
  error->icmp.code = mtu ? BL_ICMP_FRAGMENTATION_NEEDED : 0;
  error->icmp.mtu = bpf_htonl(mtu);
  error->icmp.check = bl_fold(bl_sum(ctx, &error->icmp, sizeof(error->icmp) + BL_QUOTE_IPV4, 0));
  return XDP_TX;
}

BL_INLINE int bl_error_ipv6(struct xdp_md* ctx, const struct bl_packet* packet, __u32 mtu) {
  struct {
    struct ipv6hdr ip;
    struct bl_icmp_header icmp;
  }* error;
  const __u32 quote = bl_quote(packet, BL_QUOTE_IPV6);
  const __u32 length = sizeof(error->icmp) + quote;
  if (!bl_make_room(ctx, packet, quote, sizeof(*error))) return XDP_DROP;
  error = bl_ip(ctx, packet, sizeof(*error));
  if (!error) return XDP_DROP;
  __builtin_memset(error, 0, sizeof(*error));
  error->ip.version = 6;
  error->ip.payload_len = bpf_htons(length);
  error->ip.nexthdr = IPPROTO_ICMPV6;
  error->ip.hop_limit = BL_FRESH_HOPS;
  __builtin_memcpy(&error->ip.saddr, &packet->flow.destination, sizeof(error->ip.saddr));
  __builtin_memcpy(&error->ip.daddr, &packet->flow.source, sizeof(error->ip.daddr));
  error->icmp.type = mtu ? BL_ICMPV6_TOO_BIG : BL_ICMPV6_TIME_EXCEEDED;
  if (mtu) error->icmp.mtu = bpf_htonl(mtu < BL_LEAST_MTU_IPV6 ? BL_LEAST_MTU_IPV6 : mtu);
  // The pseudo header of RFC 8200, 8.1: both addresses, length, next header.
  const __u64 sum = (__u64)bpf_htonl(length) + bpf_htonl(IPPROTO_ICMPV6);
  const __u32 most = 2 * sizeof(struct in6_addr) + sizeof(error->icmp) + BL_QUOTE_IPV6;
  error->icmp.check = bl_fold(bl_sum(ctx, &error->ip.saddr, most, sum));
  return XDP_TX;
}

// Not static: the verifier looks at it once, not for every way that leads here.
__attribute__((noinline)) int bl_send_error(struct xdp_md* ctx, const struct bl_packet* packet,
                                            __u32 mtu) {
  if (!packet) return XDP_DROP;
  return packet->flow.family == BL_FAMILY_IPV4 ? bl_error_ipv4(ctx, packet, mtu)
                                               : bl_error_ipv6(ctx, packet, mtu);
}

// The outer header is taken off `mtu` already. No error for an ICMP error, for a fragment (the
// sender would cut smaller ones, but cannot know which), for IPv4 that may be fragmented on the
// way, nor beyond the budget.
static __attribute__((noinline)) int bl_too_big(struct xdp_md* ctx, const struct bl_packet* packet,
                                                __u32 mtu) {
  int is_told = !packet->is_fragment && !packet->is_error && mtu != 0;
  if (packet->flow.family == BL_FAMILY_IPV4) {
    const struct iphdr* ip = bl_ip(ctx, packet, sizeof(*ip));
    is_told &= ip && (ip->frag_off & bpf_htons(BL_DO_NOT_FRAGMENT));
  } else {
    is_told &= packet->ip_length > BL_LEAST_MTU_IPV6;
  }
  if (!is_told || !bl_may_answer()) return bl_drop(BL_DROP_too_big);
  bl_count(BL_DROP_too_big_answered);
  return bl_verdict(bl_send_error(ctx, packet, mtu), BL_DROP_too_big_answered);
}

static __attribute__((noinline)) int bl_out_of_hops(struct xdp_md* ctx,
                                                    const struct bl_packet* packet) {
  if (packet->is_fragment || packet->is_error || !bl_may_answer())
    return bl_drop(BL_DROP_hop_limit);
  bl_count(BL_DROP_hop_limit_answered);
  return bl_verdict(bl_send_error(ctx, packet, 0), BL_DROP_hop_limit_answered);
}
