// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Sends a packet to its instance: by MAC address alone, in an outer IP header, or with another
// destination.
#pragma once

#include <linux/udp.h>

#include "bpf/lb/nat.h"
#include "bpf/lb/own_error.h"
#include "bpf/lib/checksum.h"
#include "wire/flow_hash.h"
#include "wire/tunnel.h"

BL_INLINE __u32 bl_overhead(const struct bl_instance* instance) {
  if (instance->method == BL_METHOD_L2 || instance->method == BL_METHOD_NAT) return 0;
  return (instance->family == BL_FAMILY_IPV6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)) +
         (instance->method == BL_METHOD_GUE ? sizeof(struct udphdr) : 0);
}

BL_INLINE int bl_hop(const struct xdp_md* ctx, const struct bl_packet* packet) {
  if (packet->flow.family == BL_FAMILY_IPV4) {
    struct iphdr* ip = bl_ip(ctx, packet, sizeof(*ip));
    return ip && bl_take_hop(ip);
  }
  struct ipv6hdr* ip = bl_ip(ctx, packet, sizeof(*ip));
  if (!ip || ip->hop_limit <= 1) return 0;
  --ip->hop_limit;
  return 1;
}

BL_INLINE __u8 bl_outer_protocol(const struct bl_packet* packet, int is_gue) {
  if (is_gue) return IPPROTO_UDP;
  return packet->flow.family == BL_FAMILY_IPV4 ? IPPROTO_IPIP : IPPROTO_IPV6;
}

BL_INLINE void bl_outer_ipv4(struct iphdr* ip, const struct bl_instance* instance,
                             const struct bl_packet* packet, int is_gue) {
  const __u32 overhead = sizeof(*ip) + (is_gue ? sizeof(struct udphdr) : 0);
  __builtin_memset(ip, 0, sizeof(*ip));
  ip->version = 4;
  ip->ihl = 5;
  ip->tos = packet->traffic_class;
  ip->tot_len = bpf_htons(packet->ip_length + overhead);
  ip->frag_off = bpf_htons(BL_DO_NOT_FRAGMENT);
  ip->ttl = BL_FRESH_HOPS;
  ip->protocol = bl_outer_protocol(packet, is_gue);
  ip->saddr = instance->outer_source.word[0];
  ip->daddr = instance->address.word[0];
  ip->check = bl_ipv4_checksum(ip);
}

BL_INLINE void bl_outer_ipv6(struct ipv6hdr* ip, const struct bl_instance* instance,
                             const struct bl_packet* packet, int is_gue) {
  __builtin_memset(ip, 0, sizeof(*ip));
  ip->version = 6;
  ip->priority = packet->traffic_class >> 4;
  ip->flow_lbl[0] = packet->traffic_class << 4;
  ip->payload_len = bpf_htons(packet->ip_length + (is_gue ? sizeof(struct udphdr) : 0));
  ip->nexthdr = bl_outer_protocol(packet, is_gue);
  ip->hop_limit = BL_FRESH_HOPS;
  __builtin_memcpy(&ip->saddr, &instance->outer_source, sizeof(ip->saddr));
  __builtin_memcpy(&ip->daddr, &instance->address, sizeof(ip->daddr));
}

// The source port tells flows apart on the way. No checksum: the inner packet has its own (RFC
// 6935, 5).
BL_INLINE void bl_outer_udp(struct udphdr* udp, const struct bl_packet* packet) {
  udp->source = bpf_htons(0xc000 | (bl_hash_flow(&packet->flow, hash_seed).of_member & 0x3fff));
  udp->dest = bpf_htons(BL_GUE_PORT);
  udp->len = bpf_htons(packet->ip_length + sizeof(*udp));
  udp->check = 0;
}

// Moves what stands before IP, VLAN tags included, to the packet's new start. What is at `to` and
// `from` overlaps only where the former is read already.
BL_INLINE int bl_move_ethernet(struct xdp_md* ctx, const struct bl_packet* packet, __u32 overhead,
                               __be16 type) {
  void* to = bl_data(ctx);
  void* from = to + overhead;
  if (from + ETH_HLEN + BL_MOST_TAGS * sizeof(struct bl_vlan_tag) > bl_end(ctx)) return 0;
  const __u32 length = packet->ip_offset;
  __be16* last;
  if (length == ETH_HLEN) {
    last = &((struct ethhdr*)to)->h_proto;
  } else if (length == ETH_HLEN + sizeof(struct bl_vlan_tag)) {
    __builtin_memmove(to + 12, from + 12, 6);
    last = to + 16;
  } else {
    __builtin_memmove(to + 12, from + 12, 10);
    last = to + 20;
  }
  *last = type;
  return 1;
}

// What GUE's header takes that names the candidate, by the outer family.
BL_INLINE __u32 bl_naming_size(int is_ipv4) {
  return sizeof(struct bl_gue) + (is_ipv4 ? sizeof(__be32) : sizeof(struct in6_addr));
}

// Who may have the connection if the instance has not, if the tunnel can name it; else NULL. After
// a balancer was lost; docs/design/lb-lost-balancer.md.
BL_INLINE const struct bl_instance* bl_find_candidate(const struct bl_packet* packet,
                                                      const struct bl_instance* instance) {
  if (!packet->candidate || instance->method != BL_METHOD_GUE || packet->is_fragment) return NULL;
  __u32 index = packet->candidate - 1;
  const struct bl_instance* candidate = bpf_map_lookup_elem(&instances, &index);
  if (!candidate || candidate->state != BL_INSTANCE_UP || candidate->family != instance->family)
    return NULL;
  return candidate;
}

BL_INLINE void bl_name_candidate(void* from, const struct bl_packet* packet,
                                 const struct bl_instance* candidate, int is_ipv4) {
  struct bl_gue* gue = from;
  const __u32 size = bl_naming_size(is_ipv4) - sizeof(*gue);
  gue->length = size / 4;
  gue->protocol = bl_outer_protocol(packet, 0);
  gue->flags_be = 0;
  __builtin_memcpy(gue + 1, &candidate->address, size);
}

// Writes the outer headers. The choices are constants in each call: the verifier wants to know
// how much is written.
BL_INLINE int bl_encapsulate(struct xdp_md* ctx, struct bl_packet* packet,
                             const struct bl_instance* instance, int is_ipv4, int is_gue,
                             const struct bl_instance* candidate) {
  const __u32 ip_size = is_ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
  const __u32 naming = candidate ? bl_naming_size(is_ipv4) : 0;
  const __u32 overhead = ip_size + (is_gue ? sizeof(struct udphdr) : 0) + naming;
  if (bpf_xdp_adjust_head(ctx, -(int)overhead)) return 0;
  if (!bl_move_ethernet(ctx, packet, overhead, bpf_htons(is_ipv4 ? ETH_P_IP : ETH_P_IPV6)))
    return 0;
  void* outer = bl_ip(ctx, packet, overhead);
  if (!outer) return 0;
  packet->ip_length += naming;
  if (is_ipv4)
    bl_outer_ipv4(outer, instance, packet, is_gue);
  else
    bl_outer_ipv6(outer, instance, packet, is_gue);
  if (is_gue) bl_outer_udp(outer + ip_size, packet);
  packet->ip_length -= naming;
  if (candidate)
    bl_name_candidate(outer + ip_size + sizeof(struct udphdr), packet, candidate, is_ipv4);
  return 1;
}

BL_INLINE int bl_tunnel(struct xdp_md* ctx, struct bl_packet* packet,
                        const struct bl_instance* instance, const struct bl_instance* candidate) {
  const int is_gue = instance->method == BL_METHOD_GUE;
  if (candidate)
    return instance->family == BL_FAMILY_IPV4
               ? bl_encapsulate(ctx, packet, instance, 1, 1, candidate)
               : bl_encapsulate(ctx, packet, instance, 0, 1, candidate);
  if (instance->family == BL_FAMILY_IPV4)
    return is_gue ? bl_encapsulate(ctx, packet, instance, 1, 1, NULL)
                  : bl_encapsulate(ctx, packet, instance, 1, 0, NULL);
  return is_gue ? bl_encapsulate(ctx, packet, instance, 0, 1, NULL)
                : bl_encapsulate(ctx, packet, instance, 0, 0, NULL);
}

BL_INLINE void bl_count_traffic(void* map, __u32 index, const struct bl_packet* packet) {
  struct bl_traffic* traffic = bpf_map_lookup_elem(map, &index);
  if (!traffic) return;
  ++traffic->packets;
  traffic->bytes += packet->ip_length;
  traffic->connections += packet->is_first;
}

BL_INLINE int bl_is_zero_mac(const __u8* mac) {
  return (mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5]) == 0;
}

// The last step of every packet that goes to an instance.
BL_INLINE int bl_forward(struct xdp_md* ctx, struct bl_packet* packet) {
  __u32 index = packet->instance;
  const struct bl_instance* instance = bpf_map_lookup_elem(&instances, &index);
  if (!instance || instance->state == BL_INSTANCE_ABSENT) return bl_drop(BL_DROP_no_instance);
  if (bl_is_zero_mac(instance->mac)) return bl_drop(BL_DROP_no_neighbour);
  const struct bl_instance* candidate = bl_find_candidate(packet, instance);
  __u32 overhead = bl_overhead(instance);
  if (candidate) overhead += bl_naming_size(instance->family == BL_FAMILY_IPV4);
  if (instance->mtu && packet->ip_length + overhead > instance->mtu)
    return bl_too_big(ctx, packet, instance->mtu - overhead);
  if (!bl_hop(ctx, packet)) return bl_out_of_hops(ctx, packet);
  if (overhead && !bl_tunnel(ctx, packet, instance, candidate)) return bl_drop(BL_DROP_no_room);
  if (instance->method == BL_METHOD_NAT && !bl_nat_to_instance(ctx, packet, instance))
    return bl_drop(BL_DROP_extension_header);
  struct ethhdr* ethernet = bl_data(ctx);
  if ((void*)(ethernet + 1) > bl_end(ctx)) return bl_drop(BL_DROP_malformed);
  __builtin_memcpy(ethernet->h_dest, instance->mac, ETH_ALEN);
  __builtin_memcpy(ethernet->h_source, instance->source_mac, ETH_ALEN);
  bl_count_traffic(&instance_counters, index, packet);
  if (instance->ifindex == 0 || instance->ifindex == ctx->ingress_ifindex) return XDP_TX;
  packet->out_ifindex = instance->ifindex;
  return bpf_redirect(instance->ifindex, 0);
}
