// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// On an instance: a packet from the middle of a TCP connection that this host does not know goes on
// to the one other instance that the balancer named, once. docs/design/lb-lost-balancer.md.
#pragma once

#include <linux/udp.h>

#include "bpf/lib/checksum.h"
#include "bpf/lib/parse.h"
#include "wire/tunnel.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, BL_MOST_PEERS);
  __type(key, struct bl_balancer_key);
  __type(value, struct bl_peer);
} peers SEC(".maps");

enum { BL_LONGEST_IPV4_HEADER = 60 };

// A listener alone does not have the connection, unless the segment answers a SYN cookie of its.
BL_INLINE int bl_answers_cookie(const struct xdp_md* ctx, struct bpf_sock* listener, void* ip,
                                const struct bl_packet* inner) {
  const __u32 offset = inner->transport_offset;
  if (offset > BL_LONGEST_IPV4_HEADER) return 0;
  struct tcphdr* tcp = ip + offset;
  if ((void*)(tcp + 1) > bl_end(ctx)) return 0;
  if (inner->flow.family == BL_FAMILY_IPV4)
    return ip + sizeof(struct iphdr) <= bl_end(ctx) &&
           bpf_tcp_check_syncookie(listener, ip, sizeof(struct iphdr), tcp, sizeof(*tcp)) == 0;
  return ip + sizeof(struct ipv6hdr) <= bl_end(ctx) &&
         bpf_tcp_check_syncookie(listener, ip, sizeof(struct ipv6hdr), tcp, sizeof(*tcp)) == 0;
}

BL_INLINE struct bpf_sock* bl_find_socket(struct xdp_md* ctx, const struct bl_flow_key* flow) {
  struct bpf_sock_tuple tuple = {};
  if (flow->family == BL_FAMILY_IPV4) {
    tuple.ipv4.saddr = flow->source.word[0];
    tuple.ipv4.daddr = flow->destination.word[0];
    tuple.ipv4.sport = flow->source_port_be;
    tuple.ipv4.dport = flow->destination_port_be;
    return bpf_skc_lookup_tcp(ctx, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
  }
  __builtin_memcpy(tuple.ipv6.saddr, &flow->source, sizeof(tuple.ipv6.saddr));
  __builtin_memcpy(tuple.ipv6.daddr, &flow->destination, sizeof(tuple.ipv6.daddr));
  tuple.ipv6.sport = flow->source_port_be;
  tuple.ipv6.dport = flow->destination_port_be;
  return bpf_skc_lookup_tcp(ctx, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
}

// Whether the packet that begins `taken` bytes after the outer IP header, a constant, may be of a
// connection that this host has: open, being opened, or closed of late.
BL_INLINE int bl_may_be_ours(struct xdp_md* ctx, const struct bl_packet* packet, __u32 taken) {
  struct bl_packet inner;
  void* ip = bl_ip(ctx, packet, taken + sizeof(struct iphdr));
  if (!ip) return 1;
  ip += taken;
  __builtin_memset(&inner, 0, sizeof(inner));
  const enum bl_parsed parsed = *(__u8*)ip >> 4 == 4 ? bl_parse_ipv4(ip, bl_end(ctx), &inner)
                                                     : bl_parse_ipv6(ip, bl_end(ctx), &inner);
  if (parsed != BL_PARSED_FLOW || inner.flow.protocol != IPPROTO_TCP) return 1;
  if ((inner.tcp_flags & (BL_TCP_SYN | BL_TCP_ACK)) == BL_TCP_SYN) return 1;
  struct bpf_sock* socket = bl_find_socket(ctx, &inner.flow);
  if (!socket) return 0;
  const int is_ours = socket->state != BPF_TCP_LISTEN || bl_answers_cookie(ctx, socket, ip, &inner);
  bpf_sk_release(socket);
  return is_ours;
}

// The peer's entry, or NULL while its MAC address is sought. TCP sends again what is lost then.
BL_INLINE const struct bl_peer* bl_find_peer(const struct bl_balancer_key* key) {
  const struct bl_peer* peer = bpf_map_lookup_elem(&peers, key);
  if (peer && peer->ifindex) return peer;
  if (!peer) {
    const struct bl_peer wanted = {};
    bpf_map_update_elem(&peers, key, &wanted, BPF_NOEXIST);
  }
  return NULL;
}

enum { BL_NOT_HANDED_ON = -1 };

// Only the outer destination changes, and the name of the other one goes: no packet goes on twice.
// `taken` is a constant. BL_NOT_HANDED_ON: nobody was named.
BL_INLINE int bl_hand_on(struct xdp_md* ctx, const struct bl_packet* packet, __u32 taken,
                         __u32* counter) {
  const __u32 before = sizeof(struct udphdr) + sizeof(struct bl_gue);
  const __u32 size = taken == sizeof(struct iphdr) + before + sizeof(__be32)
                         ? sizeof(__be32)
                         : sizeof(struct in6_addr);
  struct bl_balancer_key key = {.family = packet->flow.family};
  void* ip = bl_ip(ctx, packet, taken);
  struct ethhdr* ethernet = bl_data(ctx);
  if (!ip || (void*)(ethernet + 1) > bl_end(ctx)) return BL_NOT_HANDED_ON;
  __builtin_memcpy(&key.address, ip + taken - size, size);
  if (!(key.address.word[0] | key.address.word[1] | key.address.word[2] | key.address.word[3]))
    return BL_NOT_HANDED_ON;
  const struct bl_peer* peer = bl_find_peer(&key);
  *counter = BL_DECAP_no_neighbour;
  if (!peer) return XDP_DROP;
  if (size == sizeof(__be32)) {
    struct iphdr* outer = ip;
    outer->daddr = key.address.word[0];
    outer->check = 0;
    outer->check = bl_ipv4_checksum(outer);
  } else {
    __builtin_memcpy(&((struct ipv6hdr*)ip)->daddr, &key.address, size);
  }
  __builtin_memset(ip + taken - size, 0, size);
  __builtin_memcpy(ethernet->h_dest, peer->mac, ETH_ALEN);
  __builtin_memcpy(ethernet->h_source, peer->source_mac, ETH_ALEN);
  *counter = BL_DECAP_handed_on;
  return peer->ifindex == ctx->ingress_ifindex ? XDP_TX : bpf_redirect(peer->ifindex, 0);
}
