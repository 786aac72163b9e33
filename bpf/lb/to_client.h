// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Sends an instance's answer to the client: with the VIP's address, where the kernel's routes say.
#pragma once

#include "bpf/lb/forward.h"

// By the routes of the interface where the packet came in, as the VIP's.
BL_INLINE long bl_find_route(struct xdp_md* ctx, const struct bl_packet* packet,
                             struct bpf_fib_lookup* route) {
  __builtin_memset(route, 0, sizeof(*route));
  route->ifindex = ctx->ingress_ifindex;
  route->tot_len = packet->ip_length;
  if (packet->flow.family == BL_FAMILY_IPV4) {
    route->family = BL_AF_INET;
    route->ipv4_src = packet->answer_address->word[0];
    route->ipv4_dst = packet->flow.destination.word[0];
  } else {
    route->family = BL_AF_INET6;
    __builtin_memcpy(route->ipv6_src, packet->answer_address, sizeof(route->ipv6_src));
    __builtin_memcpy(route->ipv6_dst, &packet->flow.destination, sizeof(route->ipv6_dst));
  }
  return bpf_fib_lookup(ctx, route, sizeof(*route), 0);
}

BL_INLINE int bl_may_be_cut(const struct xdp_md* ctx, const struct bl_packet* packet) {
  if (packet->flow.family != BL_FAMILY_IPV4) return 0;
  const struct iphdr* ip = bl_ip(ctx, packet, sizeof(*ip));
  return ip && !(ip->frag_off & bpf_htons(BL_DO_NOT_FRAGMENT));
}

// Where the next hop's MAC address is not known, or a packet is to be cut, the kernel forwards it,
// and takes the hop.
BL_INLINE int bl_to_client(struct xdp_md* ctx, struct bl_packet* packet) {
  struct bpf_fib_lookup route;
  const long found = bl_find_route(ctx, packet, &route);
  if (found == BPF_FIB_LKUP_RET_FRAG_NEEDED && !bl_may_be_cut(ctx, packet))
    return bl_too_big(ctx, packet, route.mtu_result);
  const int is_ours = found == BPF_FIB_LKUP_RET_SUCCESS && packet->ip_offset == ETH_HLEN;
  if (is_ours && !bl_hop(ctx, packet)) return bl_out_of_hops(ctx, packet);
  if (!bl_nat_to_client(ctx, packet, packet->answer_address, packet->answer_port_be))
    return bl_drop(BL_DROP_extension_header);
  bl_note(packet, BL_EVENT_answer);
  if (!is_ours) {
    bl_count(BL_EVENT_answer_by_kernel);
    return bl_verdict(XDP_PASS, BL_EVENT_answer_by_kernel);
  }
  struct ethhdr* ethernet = bl_data(ctx);
  if ((void*)(ethernet + 1) > bl_end(ctx)) return bl_drop(BL_DROP_malformed);
  __builtin_memcpy(ethernet->h_dest, route.dmac, ETH_ALEN);
  __builtin_memcpy(ethernet->h_source, route.smac, ETH_ALEN);
  if (route.ifindex == ctx->ingress_ifindex) return XDP_TX;
  packet->out_ifindex = route.ifindex;
  return bpf_redirect(route.ifindex, 0);
}
