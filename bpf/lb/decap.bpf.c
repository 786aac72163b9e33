// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// On an instance: takes off what the balancer put around a packet (IP in IP, GUE variant 1), so
// that the kernel sees it as the client sent it. Only what comes from a listed balancer is opened.
#include "bpf/lb/second_chance.h"

// Outer source addresses.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, BL_MOST_BALANCERS);
  __type(key, struct bl_balancer_key);
  __type(value, __u8);
} balancers SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, BL_DECAP_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} decap_counters SEC(".maps");

BL_INLINE int bl_decap_end(__u32 counter, int action) {
  __u64* value = bpf_map_lookup_elem(&decap_counters, &counter);
  if (value) ++*value;
  return action;
}

enum {
  BL_GUE_NAMING_IPV4 = sizeof(struct udphdr) + sizeof(struct bl_gue) + sizeof(__be32),
  BL_GUE_NAMING_IPV6 = sizeof(struct udphdr) + sizeof(struct bl_gue) + sizeof(struct in6_addr),
};

// UDP and GUE. What is neither variant 1 nor names an address ends as malformed: nothing inside
// begins where it says.
BL_INLINE __u32 bl_gue_size(const struct xdp_md* ctx, const struct bl_packet* packet, __u32 size) {
  const __u32 before = size + sizeof(struct udphdr);
  const void* ip = bl_ip(ctx, packet, before + sizeof(struct bl_gue));
  const int is_ipv4 = packet->flow.family == BL_FAMILY_IPV4;
  if (!ip) return before;
  const struct bl_gue* gue = ip + before;
  const __u8 words = (is_ipv4 ? sizeof(__be32) : sizeof(struct in6_addr)) / 4;
  if (gue->length != words || gue->flags_be) return before;
  return size + (is_ipv4 ? BL_GUE_NAMING_IPV4 : BL_GUE_NAMING_IPV6);
}

// What follows the outer IP header of `size` bytes: how much to take off, 0 for a packet that is no
// tunnel's. `inner` is its IP version.
BL_INLINE __u32 bl_tunnel_size(const struct xdp_md* ctx, const struct bl_packet* packet,
                               __u32 size) {
  if (packet->transport_offset != size || packet->is_fragment) return 0;
  if (packet->flow.protocol == IPPROTO_IPIP || packet->flow.protocol == IPPROTO_IPV6) return size;
  if (packet->flow.protocol == IPPROTO_UDP &&
      packet->flow.destination_port_be == bpf_htons(BL_GUE_PORT))
    return bl_gue_size(ctx, packet, size);
  return 0;
}

// The inner packet's version by its first byte, if the whole of it is there.
BL_INLINE __u8 bl_inner_version(const struct xdp_md* ctx, const struct bl_packet* packet,
                                __u32 taken) {
  const __u8* inner = bl_ip(ctx, packet, taken + sizeof(struct iphdr));
  if (!inner || taken + sizeof(struct iphdr) > packet->ip_length) return 0;
  return inner[taken] >> 4;
}

BL_INLINE int bl_take_off(struct xdp_md* ctx, const struct bl_packet* packet, __u32 taken) {
  const __u8 version = bl_inner_version(ctx, packet, taken);
  __u8 addresses[2 * ETH_ALEN];
  if (version != 4 && version != 6) return bl_decap_end(BL_DECAP_malformed, XDP_DROP);
  struct ethhdr* ethernet = bl_data(ctx);
  if ((void*)(ethernet + 1) > bl_end(ctx)) return bl_decap_end(BL_DECAP_malformed, XDP_DROP);
  __builtin_memcpy(addresses, ethernet, sizeof(addresses));
  if (bpf_xdp_adjust_head(ctx, (int)(packet->ip_offset - ETH_HLEN + taken)))
    return bl_decap_end(BL_DECAP_malformed, XDP_DROP);
  ethernet = bl_data(ctx);
  if ((void*)(ethernet + 1) > bl_end(ctx)) return XDP_DROP;
  __builtin_memcpy(ethernet, addresses, sizeof(addresses));
  ethernet->h_proto = bpf_htons(version == 4 ? ETH_P_IP : ETH_P_IPV6);
  return bl_decap_end(BL_DECAP_opened, XDP_PASS);
}

BL_INLINE int bl_take_off_or_hand_on(struct xdp_md* ctx, const struct bl_packet* packet,
                                     __u32 taken) {
  if (!bl_may_be_ours(ctx, packet, taken)) {
    __u32 counter;
    const int verdict = bl_hand_on(ctx, packet, taken, &counter);
    if (verdict != BL_NOT_HANDED_ON) return bl_decap_end(counter, verdict);
  }
  return bl_take_off(ctx, packet, taken);
}

SEC("xdp")
int decap(struct xdp_md* ctx) {
  struct bl_packet packet;
  const enum bl_parsed parsed = bl_parse(ctx, &packet);
  if (parsed != BL_PARSED_FLOW && parsed != BL_PARSED_OTHER) return XDP_PASS;
  // The compiler is not to know its range: it would leave out the checks by which the verifier
  // knows it.
  __u32 offset = packet.ip_offset;
  __asm__ volatile("" : "+r"(offset));
  packet.ip_offset = offset;
  const __u32 size =
      packet.flow.family == BL_FAMILY_IPV4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
  const __u32 taken = bl_tunnel_size(ctx, &packet, size);
  if (!taken) return XDP_PASS;
  struct bl_balancer_key key = {.address = packet.flow.source, .family = packet.flow.family};
  if (!bpf_map_lookup_elem(&balancers, &key)) return bl_decap_end(BL_DECAP_stranger, XDP_PASS);
  if (taken == sizeof(struct iphdr)) return bl_take_off(ctx, &packet, sizeof(struct iphdr));
  if (taken == sizeof(struct ipv6hdr)) return bl_take_off(ctx, &packet, sizeof(struct ipv6hdr));
  if (taken == sizeof(struct iphdr) + sizeof(struct udphdr))
    return bl_take_off(ctx, &packet, sizeof(struct iphdr) + sizeof(struct udphdr));
  if (taken == sizeof(struct iphdr) + BL_GUE_NAMING_IPV4)
    return bl_take_off_or_hand_on(ctx, &packet, sizeof(struct iphdr) + BL_GUE_NAMING_IPV4);
  if (taken == sizeof(struct ipv6hdr) + BL_GUE_NAMING_IPV6)
    return bl_take_off_or_hand_on(ctx, &packet, sizeof(struct ipv6hdr) + BL_GUE_NAMING_IPV6);
  return bl_take_off(ctx, &packet, sizeof(struct ipv6hdr) + sizeof(struct udphdr));
}

char _license[] SEC("license") = "Dual BSD/GPL";
