// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Tells the sender that its packet does not fit: RFC 792 and 1191 for IPv4, RFC 4443, 3.2 for IPv6.
// The answer is the packet itself, cut, with its addresses swapped.
#pragma once

#include "bpf/lb/maps.h"
#include "bpf/lib/checksum.h"

enum {
  BL_QUOTE_IPV4 = 548,   // 576 in all (RFC 1812, 4.3.2.3)
  BL_QUOTE_IPV6 = 1232,  // 1280 in all
  BL_LEAST_MTU_IPV6 = 1280,
  BL_CHECKSUM_PIECE = 512,  // what the kernel sums in one call on older versions
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

// The sum of `size` bytes, a constant and a multiple of 4.
BL_INLINE __u64 bl_sum(void* from, __u32 size, __u64 sum) {
  __u32 done = 0;
#pragma clang loop unroll(full)
  for (int i = 0; i < 3; ++i) {
    if (done + BL_CHECKSUM_PIECE > size) break;
    sum = (__u32)bpf_csum_diff(NULL, 0, from + done, BL_CHECKSUM_PIECE, sum);
    done += BL_CHECKSUM_PIECE;
  }
  if (done < size) sum = (__u32)bpf_csum_diff(NULL, 0, from + done, size - done, sum);
  return sum;
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

BL_INLINE int bl_too_big_ipv4(struct xdp_md* ctx, const struct bl_packet* packet, __u32 mtu) {
  struct {
    struct iphdr ip;
    struct bl_icmp_header icmp;
  }* answer;
  if (!bl_make_room(ctx, packet, BL_QUOTE_IPV4, sizeof(*answer))) return XDP_DROP;
  answer = bl_ip(ctx, packet, sizeof(*answer) + BL_QUOTE_IPV4);
  if (!answer) return XDP_DROP;
  __builtin_memset(answer, 0, sizeof(*answer));
  answer->ip.version = 4;
  answer->ip.ihl = 5;
  answer->ip.tot_len = bpf_htons(sizeof(*answer) + BL_QUOTE_IPV4);
  answer->ip.ttl = BL_FRESH_HOPS;
  answer->ip.protocol = IPPROTO_ICMP;
  answer->ip.saddr = packet->flow.destination.word[0];
  answer->ip.daddr = packet->flow.source.word[0];
  answer->ip.check = bl_ipv4_checksum(&answer->ip);
  answer->icmp.type = BL_ICMP_UNREACHABLE;
  answer->icmp.code = BL_ICMP_FRAGMENTATION_NEEDED;
  answer->icmp.mtu = bpf_htonl(mtu);
  __u64 sum = (__u32)bpf_csum_diff(NULL, 0, (void*)&answer->icmp, sizeof(answer->icmp), 0);
  answer->icmp.check = bl_fold(bl_sum(answer + 1, BL_QUOTE_IPV4, sum));
  return XDP_TX;
}

BL_INLINE int bl_too_big_ipv6(struct xdp_md* ctx, const struct bl_packet* packet, __u32 mtu) {
  struct {
    struct ipv6hdr ip;
    struct bl_icmp_header icmp;
  }* answer;
  const __u32 length = sizeof(answer->icmp) + BL_QUOTE_IPV6;
  if (!bl_make_room(ctx, packet, BL_QUOTE_IPV6, sizeof(*answer))) return XDP_DROP;
  answer = bl_ip(ctx, packet, sizeof(*answer) + BL_QUOTE_IPV6);
  if (!answer) return XDP_DROP;
  __builtin_memset(answer, 0, sizeof(*answer));
  answer->ip.version = 6;
  answer->ip.payload_len = bpf_htons(length);
  answer->ip.nexthdr = IPPROTO_ICMPV6;
  answer->ip.hop_limit = BL_FRESH_HOPS;
  __builtin_memcpy(&answer->ip.saddr, &packet->flow.destination, sizeof(answer->ip.saddr));
  __builtin_memcpy(&answer->ip.daddr, &packet->flow.source, sizeof(answer->ip.daddr));
  answer->icmp.type = BL_ICMPV6_TOO_BIG;
  answer->icmp.mtu = bpf_htonl(mtu < BL_LEAST_MTU_IPV6 ? BL_LEAST_MTU_IPV6 : mtu);
  // The pseudo header of RFC 8200, 8.1: both addresses, length, next header.
  __u64 sum = bpf_htonl(length) + (__u64)bpf_htonl(IPPROTO_ICMPV6);
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (__u32)bpf_csum_diff(NULL, 0, (void*)&answer->ip.saddr, 2 * sizeof(struct in6_addr), sum);
  sum = (__u32)bpf_csum_diff(NULL, 0, (void*)&answer->icmp, sizeof(answer->icmp), sum);
  answer->icmp.check = bl_fold(bl_sum(answer + 1, BL_QUOTE_IPV6, sum));
  return XDP_TX;
}

// `mtu` is what the sender may use: the outer header is taken off already. No answer to an ICMP
// error, to a fragment (the sender would cut smaller ones, but cannot know which), to IPv4 that may
// be fragmented on the way, nor beyond the budget.
static __attribute__((noinline)) int bl_too_big(struct xdp_md* ctx, const struct bl_packet* packet,
                                                __u32 mtu) {
  int is_answered = !packet->is_fragment && !packet->is_error;
  if (packet->flow.family == BL_FAMILY_IPV4) {
    const struct iphdr* ip = bl_ip(ctx, packet, sizeof(*ip));
    is_answered &= ip && (ip->frag_off & bpf_htons(0x4000)) && packet->ip_length >= BL_QUOTE_IPV4;
  } else {
    is_answered &= packet->ip_length > BL_LEAST_MTU_IPV6;
  }
  if (!is_answered || !bl_may_answer()) return bl_drop(BL_DROP_too_big);
  bl_count(BL_DROP_too_big_answered);
  const int action = packet->flow.family == BL_FAMILY_IPV4 ? bl_too_big_ipv4(ctx, packet, mtu)
                                                           : bl_too_big_ipv6(ctx, packet, mtu);
  return bl_verdict(action, BL_DROP_too_big_answered);
}
