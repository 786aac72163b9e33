// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// ICMP and ICMPv6 to a VIP: errors follow the connection they quote, echo requests are answered,
// all else is the kernel's.
#pragma once

#include "bpf/lb/flow.h"

enum { BL_PORTS_SIZE = 4 };

// Before the quoted transport header's ports; the packet quoted went from the VIP to the client.
BL_INLINE int bl_quoted_ports(const struct xdp_md* ctx, void* transport, __u8 protocol,
                              struct bl_flow_key* flow) {
  __u16* ports = transport;
  if ((void*)(ports + 2) > bl_end(ctx)) return 0;
  flow->protocol = protocol;
  flow->destination_port_be = ports[0];
  flow->source_port_be = ports[1];
  return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP;
}

BL_INLINE int bl_quoted_ipv4(const struct xdp_md* ctx, void* quoted, struct bl_packet* packet) {
  const struct iphdr* ip = quoted;
  if ((void*)(ip + 1) > bl_end(ctx) || ip->version != 4 || ip->ihl < 5) return 0;
  if (ip->saddr != packet->flow.destination.word[0] || (ip->frag_off & bpf_htons(0x1fff))) return 0;
  const __u32 needed =
      packet->transport_offset + sizeof(struct bl_icmp_header) + ip->ihl * 4 + BL_PORTS_SIZE;
  if (needed > packet->ip_length) return 0;
  packet->flow.source.word[0] = ip->daddr;
  return bl_quoted_ports(ctx, quoted + ip->ihl * 4, ip->protocol, &packet->flow);
}

BL_INLINE int bl_quoted_ipv6(const struct xdp_md* ctx, void* quoted, struct bl_packet* packet) {
  const struct ipv6hdr* ip = quoted;
  if ((void*)(ip + 1) > bl_end(ctx) || ip->version != 6) return 0;
  __u32 differs = 0;
  for (int i = 0; i < 4; ++i)
    differs |= ip->saddr.in6_u.u6_addr32[i] ^ packet->flow.destination.word[i];
  if (differs) return 0;
  const __u32 needed =
      packet->transport_offset + sizeof(struct bl_icmp_header) + sizeof(*ip) + BL_PORTS_SIZE;
  if (needed > packet->ip_length) return 0;
  __builtin_memcpy(&packet->flow.source, &ip->daddr, sizeof(ip->daddr));
  return bl_quoted_ports(ctx, quoted + sizeof(*ip), ip->nexthdr, &packet->flow);
}

// The tables are only read: an error can be forged by anybody.
BL_INLINE int bl_icmp_error(const struct xdp_md* ctx, struct bl_packet* packet, void* quoted) {
  const int is_read = packet->flow.family == BL_FAMILY_IPV4 ? bl_quoted_ipv4(ctx, quoted, packet)
                                                            : bl_quoted_ipv6(ctx, quoted, packet);
  if (!is_read) return bl_refused(packet, BL_DROP_quote);
  packet->is_error = 1;
  const struct bl_connection* entry = bpf_map_lookup_elem(&connections, &packet->flow);
  if (entry) {
    bl_note(packet, BL_EVENT_icmp_error);
    return bl_to_instance(packet, entry->instance);
  }
  const struct bl_vip* vip = bl_find_vip(&packet->flow);
  if (!vip) return bl_find_answer(packet);
  const struct bl_flow_hash hash = bl_hash_flow(&packet->flow, hash_seed);
  __u32 instance = bl_find_newcomer(hash) & BL_WAY_INSTANCE;
  if (instance >= BL_MOST_INSTANCES) instance = bl_choose_known_elsewhere(vip, hash);
  if (instance >= BL_MOST_INSTANCES) return bl_drop(BL_DROP_no_instance);
  bl_note(packet, BL_EVENT_icmp_error);
  return bl_to_instance(packet, instance);
}

BL_INLINE int bl_answer_echo(struct xdp_md* ctx, const struct bl_packet* packet, void* icmp) {
  struct bl_icmp_header* echo = icmp;
  struct ethhdr* ethernet = bl_data(ctx);
  const int is_ipv4 = packet->flow.family == BL_FAMILY_IPV4;
  if ((void*)(ethernet + 1) > bl_end(ctx) || (void*)(echo + 1) > bl_end(ctx)) return bl_pass();
  const __u16 before = *(__u16*)echo;
  echo->type = is_ipv4 ? BL_ICMP_ECHO_REPLY : BL_ICMPV6_ECHO_REPLY;
  bl_change_word(&echo->check, before, *(__u16*)echo);
  __u8 mac[ETH_ALEN];
  __builtin_memcpy(mac, ethernet->h_dest, ETH_ALEN);
  __builtin_memcpy(ethernet->h_dest, ethernet->h_source, ETH_ALEN);
  __builtin_memcpy(ethernet->h_source, mac, ETH_ALEN);
  if (is_ipv4) {
    struct iphdr* ip = bl_ip(ctx, packet, sizeof(*ip));
    if (!ip) return XDP_DROP;
    const __u16 hops = *(__u16*)&ip->ttl;
    ip->ttl = BL_FRESH_HOPS;
    bl_change_word(&ip->check, hops, *(__u16*)&ip->ttl);
    ip->saddr = packet->flow.destination.word[0];
    ip->daddr = packet->flow.source.word[0];
  } else {
    struct ipv6hdr* ip = bl_ip(ctx, packet, sizeof(*ip));
    if (!ip) return XDP_DROP;
    ip->hop_limit = BL_FRESH_HOPS;
    __builtin_memcpy(&ip->saddr, &packet->flow.destination, sizeof(ip->saddr));
    __builtin_memcpy(&ip->daddr, &packet->flow.source, sizeof(ip->daddr));
  }
  bl_count(BL_EVENT_echo_answered);
  return bl_verdict(XDP_TX, BL_EVENT_echo_answered);
}

BL_INLINE int bl_is_error(__u8 family, __u8 type) {
  if (family == BL_FAMILY_IPV4)
    return type == BL_ICMP_UNREACHABLE || type == BL_ICMP_TIME_EXCEEDED ||
           type == BL_ICMP_PARAMETER_PROBLEM;
  return type >= BL_ICMPV6_UNREACHABLE && type <= BL_ICMPV6_PARAMETER_PROBLEM;
}

BL_INLINE int bl_icmp(struct xdp_md* ctx, struct bl_packet* packet) {
  void* ip = bl_ip(ctx, packet, 0);
  const __u32 offset = packet->transport_offset;
  if (!ip || offset > 2048) return bl_pass();
  struct bl_icmp_header* icmp = ip + offset;
  if ((void*)(icmp + 1) > bl_end(ctx) || offset + sizeof(*icmp) > packet->ip_length)
    return bl_refused(packet, BL_DROP_malformed);
  if (bl_is_error(packet->flow.family, icmp->type)) return bl_icmp_error(ctx, packet, icmp + 1);
  const __u8 request = packet->flow.family == BL_FAMILY_IPV4 ? BL_ICMP_ECHO : BL_ICMPV6_ECHO;
  if (icmp->type != request || !echo_is_answered || packet->is_fragment ||
      !bl_is_vip_address(&packet->flow))
    return bl_pass();
  return bl_answer_echo(ctx, packet, icmp);
}
