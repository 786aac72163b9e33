// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Ethernet with up to two VLAN tags, IPv4 with options, IPv6 with extension headers, TCP and UDP.
// Nothing is read that the packet's IP length does not cover.
#pragma once

#include <linux/tcp.h>
#include <linux/udp.h>

#include "bpf/lib/packet.h"

enum { BL_MOST_EXTENSION_HEADERS = 6 };

BL_INLINE enum bl_parsed bl_refuse(struct bl_packet* packet, __u8 reason) {
  packet->reason = reason;
  return BL_PARSED_REFUSED;
}

// `transport` is inside the packet or at its end; `length` is what IP says is there.
BL_INLINE enum bl_parsed bl_parse_transport(void* transport, const void* end, __u32 length,
                                            struct bl_packet* packet) {
  switch (packet->flow.protocol) {
    case IPPROTO_TCP: {
      struct tcphdr* tcp = transport;
      if (length < sizeof(*tcp) || (void*)(tcp + 1) > end || tcp->doff * 4 < sizeof(*tcp))
        return bl_refuse(packet, BL_DROP_malformed);
      packet->flow.source_port_be = tcp->source;
      packet->flow.destination_port_be = tcp->dest;
      packet->tcp_flags = ((__u8*)tcp)[13];
      packet->has_ports = 1;
      return BL_PARSED_FLOW;
    }
    case IPPROTO_UDP: {
      struct udphdr* udp = transport;
      if (length < sizeof(*udp) || (void*)(udp + 1) > end || bpf_ntohs(udp->len) < sizeof(*udp))
        return bl_refuse(packet, BL_DROP_malformed);
      packet->flow.source_port_be = udp->source;
      packet->flow.destination_port_be = udp->dest;
      packet->has_ports = 1;
      return BL_PARSED_FLOW;
    }
    case IPPROTO_ICMP:
      return packet->flow.family == BL_FAMILY_IPV4 ? BL_PARSED_ICMP : BL_PARSED_OTHER;
    case IPPROTO_ICMPV6:
      return packet->flow.family == BL_FAMILY_IPV6 ? BL_PARSED_ICMP : BL_PARSED_OTHER;
    default:
      return BL_PARSED_OTHER;
  }
}

BL_INLINE enum bl_parsed bl_parse_ipv4(struct iphdr* ip, const void* end,
                                       struct bl_packet* packet) {
  if ((void*)(ip + 1) > end || ip->version != 4) return BL_PARSED_OTHER;
  packet->flow.family = BL_FAMILY_IPV4;
  packet->flow.source.word[0] = ip->saddr;
  packet->flow.destination.word[0] = ip->daddr;
  packet->flow.protocol = ip->protocol;
  packet->ip_length = bpf_ntohs(ip->tot_len);
  packet->transport_offset = ip->ihl * 4;
  packet->traffic_class = ip->tos;
  if (packet->transport_offset < sizeof(*ip) || packet->ip_length < packet->transport_offset ||
      packet->ip_length > end - (void*)ip)
    return bl_refuse(packet, BL_DROP_malformed);
  const __u16 fragment = bpf_ntohs(ip->frag_off);
  if (fragment & 0x3fff) {
    packet->is_fragment = 1;
    packet->fragment_id = ip->id;
    if (fragment & 0x1fff) return BL_PARSED_LATER_FRAGMENT;
  }
  return bl_parse_transport((void*)ip + packet->transport_offset, end,
                            packet->ip_length - packet->transport_offset, packet);
}

struct bl_extension_header {
  __u8 next;
  __u8 length;  // in units of 8 bytes, the first not counted
  __be16 fragment_offset;
  __be32 fragment_id;
};

BL_INLINE int bl_is_extension(__u8 type) {
  return type == IPPROTO_HOPOPTS || type == IPPROTO_DSTOPTS || type == IPPROTO_ROUTING ||
         type == IPPROTO_FRAGMENT;
}

// RFC 8200, 4. The headers that say nothing on the flow are skipped, a fragment's is read.
BL_INLINE enum bl_parsed bl_parse_extensions(struct ipv6hdr* ip, const void* end,
                                             struct bl_packet* packet) {
  __u32 offset = sizeof(*ip);
  __u8 type = ip->nexthdr;
  for (int i = 0; i < BL_MOST_EXTENSION_HEADERS && bl_is_extension(type); ++i) {
    struct bl_extension_header* header = (void*)ip + offset;
    if ((void*)(header + 1) > end || offset + sizeof(*header) > packet->ip_length)
      return bl_refuse(packet, BL_DROP_malformed);
    if (type == IPPROTO_FRAGMENT) {
      packet->is_fragment = 1;
      packet->fragment_id = header->fragment_id;
      packet->flow.protocol = header->next;
      if (bpf_ntohs(header->fragment_offset) & 0xfff8) return BL_PARSED_LATER_FRAGMENT;
      offset += sizeof(*header);
    } else {
      offset += (header->length + 1) * 8;
    }
    type = header->next;
  }
  if (bl_is_extension(type) || type == IPPROTO_AH || type == IPPROTO_NONE)
    return bl_refuse(packet, BL_DROP_extension_header);
  if (offset > packet->ip_length) return bl_refuse(packet, BL_DROP_malformed);
  packet->flow.protocol = type;
  packet->transport_offset = offset;
  return bl_parse_transport((void*)ip + offset, end, packet->ip_length - offset, packet);
}

BL_INLINE enum bl_parsed bl_parse_ipv6(struct ipv6hdr* ip, const void* end,
                                       struct bl_packet* packet) {
  if ((void*)(ip + 1) > end || ip->version != 6) return BL_PARSED_OTHER;
  packet->flow.family = BL_FAMILY_IPV6;
  __builtin_memcpy(&packet->flow.source, &ip->saddr, sizeof(ip->saddr));
  __builtin_memcpy(&packet->flow.destination, &ip->daddr, sizeof(ip->daddr));
  packet->flow.protocol = ip->nexthdr;
  packet->ip_length = bpf_ntohs(ip->payload_len) + sizeof(*ip);
  packet->transport_offset = sizeof(*ip);
  packet->traffic_class = ip->priority << 4 | ip->flow_lbl[0] >> 4;
  if (packet->ip_length > end - (void*)ip) return bl_refuse(packet, BL_DROP_malformed);
  if (bl_is_extension(ip->nexthdr) || ip->nexthdr == IPPROTO_AH || ip->nexthdr == IPPROTO_NONE)
    return bl_parse_extensions(ip, end, packet);
  return bl_parse_transport(ip + 1, end, packet->ip_length - sizeof(*ip), packet);
}

BL_INLINE enum bl_parsed bl_parse(const struct xdp_md* ctx, struct bl_packet* packet) {
  void* end = bl_end(ctx);
  struct ethhdr* ethernet = bl_data(ctx);
  __builtin_memset(packet, 0, sizeof(*packet));
  if ((void*)(ethernet + 1) > end) return BL_PARSED_OTHER;
  __be16 type = ethernet->h_proto;
  void* next = ethernet + 1;
  packet->ip_offset = sizeof(*ethernet);
  for (int i = 0; i < BL_MOST_TAGS; ++i) {
    struct bl_vlan_tag* tag = next;
    if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD)) break;
    if ((void*)(tag + 1) > end) return BL_PARSED_OTHER;
    type = tag->next_type;
    next = tag + 1;
    packet->ip_offset += sizeof(*tag);
  }
  if (type == bpf_htons(ETH_P_IP)) return bl_parse_ipv4(next, end, packet);
  if (type == bpf_htons(ETH_P_IPV6)) return bl_parse_ipv6(next, end, packet);
  return BL_PARSED_OTHER;
}
