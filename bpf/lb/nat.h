// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Network address translation: to an instance the destination's address and port change, back to
// the client the source's. An ICMP error is changed in its quote too, where the packet quoted was.
#pragma once

#include <linux/tcp.h>
#include <linux/udp.h>

#include "bpf/lb/maps.h"
#include "bpf/lib/checksum.h"

enum { BL_MOST_TRANSPORT_OFFSET = 2048 };

// `size` bytes, a constant, at `offset` from the IP header; NULL if they are not there.
BL_INLINE void* bl_at(const struct xdp_md* ctx, const struct bl_packet* packet, __u32 offset,
                      __u32 size) {
  void* ip = bl_ip(ctx, packet, 0);
  if (!ip || offset > BL_MOST_TRANSPORT_OFFSET) return NULL;
  void* at = ip + offset;
  return at + size > bl_end(ctx) ? NULL : at;
}

// These three change a field and return by how much a checksum over it changes.
BL_INLINE __u64 bl_put_address(__u32* at, const struct bl_address* address, int words) {
  __u64 sum = 0;
#pragma clang loop unroll(full)
  for (int i = 0; i < words; ++i) {
    sum += (__u64)(__u32)~at[i] + address->word[i];
    at[i] = address->word[i];
  }
  return sum;
}

BL_INLINE __u64 bl_put_port(__u16* at, __u16 port_be) {
  if (port_be == 0) return 0;
  const __u64 sum = (__u64)(__u16) ~*at + port_be;
  *at = port_be;
  return sum;
}

BL_INLINE __u64 bl_amend(__u16* check, __u64 sum) {
  const __u16 before = *check;
  *check = bl_fold((__u64)(__u16)~before + sum);
  return (__u64)(__u16)~before + *check;
}

// In UDP 0 says that there is no checksum.
BL_INLINE __u64 bl_amend_udp(__u16* check, __u64 sum) {
  const __u16 before = *check;
  if (before == 0) return 0;
  bl_amend(check, sum);
  if (*check == 0) *check = 0xffff;
  return (__u64)(__u16)~before + *check;
}

struct bl_translation {
  const struct bl_address* address;
  __u16 port_be;  // 0: stays
};

// Port and checksum of the header at `offset`, of which a quote may end before the checksum. `sum`
// is what the addresses add. Returns by how much a checksum over the header changes.
BL_INLINE __u64 bl_translate_transport(const struct xdp_md* ctx, const struct bl_packet* packet,
                                       __u32 offset, __u64 sum, __u16 port_be, int is_source) {
  __u16* ports = bl_at(ctx, packet, offset, 2 * sizeof(*ports));
  if (!ports) return 0;
  const __u64 change = bl_put_port(is_source ? &ports[0] : &ports[1], port_be);
  const int is_udp = packet->flow.protocol == IPPROTO_UDP;
  const __u32 place =
      offset + (is_udp ? offsetof(struct udphdr, check) : offsetof(struct tcphdr, check));
  __u16* check = bl_at(ctx, packet, place, sizeof(*check));
  if (!check || place + sizeof(*check) > packet->ip_length) return change;
  return change + (is_udp ? bl_amend_udp(check, sum + change) : bl_amend(check, sum + change));
}

// `sum` is what the outer address adds to a checksum that covers it.
BL_INLINE int bl_translate_error(const struct xdp_md* ctx, const struct bl_packet* packet,
                                 struct bl_translation to, __u64 sum, int is_ipv4, int is_answer) {
  __u32 offset = packet->transport_offset + sizeof(struct bl_icmp_header);
  __u64 change;
  if (is_ipv4) {
    struct iphdr* quoted = bl_at(ctx, packet, offset, sizeof(*quoted));
    if (!quoted) return 0;
    const __u64 put = bl_put_address(is_answer ? &quoted->daddr : &quoted->saddr, to.address, 1);
    change = put + bl_amend(&quoted->check, put);
    offset += quoted->ihl * 4;
    change += bl_translate_transport(ctx, packet, offset, put, to.port_be, !is_answer);
  } else {
    struct ipv6hdr* quoted = bl_at(ctx, packet, offset, sizeof(*quoted));
    if (!quoted) return 0;
    struct in6_addr* at = is_answer ? &quoted->daddr : &quoted->saddr;
    const __u64 put = bl_put_address(at->in6_u.u6_addr32, to.address, 4);
    offset += sizeof(*quoted);
    change = put + sum;
    change += bl_translate_transport(ctx, packet, offset, put, to.port_be, !is_answer);
  }
  struct bl_icmp_header* icmp = bl_at(ctx, packet, packet->transport_offset, sizeof(*icmp));
  if (!icmp) return 0;
  bl_amend(&icmp->check, change);
  return 1;
}

// A router between balancer and instance says of itself who it is: its address stays.
BL_INLINE int bl_is_router(const __u32* source, const struct bl_packet* packet, int words) {
  __u32 differs = 0;
#pragma clang loop unroll(full)
  for (int i = 0; i < words; ++i) differs |= source[i] ^ packet->flow.source.word[i];
  return packet->is_error && differs;
}

BL_INLINE int bl_translate(const struct xdp_md* ctx, const struct bl_packet* packet,
                           struct bl_translation to, int is_ipv4, int is_answer) {
  __u64 sum = 0;
  if (is_ipv4) {
    struct iphdr* ip = bl_ip(ctx, packet, sizeof(*ip));
    if (!ip) return 0;
    if (!is_answer || !bl_is_router(&ip->saddr, packet, 1)) {
      sum = bl_put_address(is_answer ? &ip->saddr : &ip->daddr, to.address, 1);
      bl_amend(&ip->check, sum);
    }
  } else {
    struct ipv6hdr* ip = bl_ip(ctx, packet, sizeof(*ip));
    if (!ip) return 0;
    struct in6_addr* at = is_answer ? &ip->saddr : &ip->daddr;
    if (!is_answer || !bl_is_router(at->in6_u.u6_addr32, packet, 4))
      sum = bl_put_address(at->in6_u.u6_addr32, to.address, 4);
  }
  if (packet->is_error) return bl_translate_error(ctx, packet, to, sum, is_ipv4, is_answer);
  if (!packet->has_ports) return 1;
  if (packet->transport_offset > BL_MOST_TRANSPORT_OFFSET) return 0;
  bl_translate_transport(ctx, packet, packet->transport_offset, sum, to.port_be, is_answer);
  return 1;
}

// Both return 0 for a packet whose headers are too long for it.
static __attribute__((noinline)) int bl_nat_to_instance(struct xdp_md* ctx,
                                                        const struct bl_packet* packet,
                                                        const struct bl_instance* instance) {
  const struct bl_translation to = {&instance->address, instance->port_be};
  return packet->flow.family == BL_FAMILY_IPV4 ? bl_translate(ctx, packet, to, 1, 0)
                                               : bl_translate(ctx, packet, to, 0, 0);
}

static __attribute__((noinline)) int bl_nat_to_client(struct xdp_md* ctx,
                                                      const struct bl_packet* packet,
                                                      const struct bl_address* address,
                                                      __u16 port_be) {
  const struct bl_translation to = {address, port_be};
  return packet->flow.family == BL_FAMILY_IPV4 ? bl_translate(ctx, packet, to, 1, 1)
                                               : bl_translate(ctx, packet, to, 0, 1);
}
