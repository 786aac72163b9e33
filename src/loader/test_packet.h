// SPDX-License-Identifier: Apache-2.0
// Packets for the tests of the packet path, made field by field, and checksums by the book (RFC
// 1071), apart from the program's own.
#pragma once

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <netinet/in.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "wire/lb.h"

namespace ballast::loader {

using Bytes = std::vector<uint8_t>;

template <typename Header>
void append(Bytes& bytes, const Header& header) {
  const auto* from = reinterpret_cast<const uint8_t*>(&header);
  bytes.insert(bytes.end(), from, from + sizeof(header));
}

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline uint16_t checksum(const uint8_t* from, size_t size, uint32_t sum = 0) {
  for (size_t i = 0; i < size; ++i) sum += i % 2 == 0 ? from[i] << 8 : from[i];
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return htons(static_cast<uint16_t>(~sum));
}

inline bl_address address(const char* words) {
  bl_address made{};
  if (inet_pton(AF_INET, words, made.word) != 1) inet_pton(AF_INET6, words, made.word);
  return made;
}

inline Bytes ethernet(uint16_t type, std::initializer_list<uint16_t> tags = {}) {
  Bytes bytes{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
  for (const uint16_t tag : tags) {
    append(bytes, htons(tags.size() == 2 && bytes.size() == 12 ? ETH_P_8021AD : ETH_P_8021Q));
    append(bytes, htons(tag));
  }
  append(bytes, htons(type));
  return bytes;
}

struct Ipv4 {
  const char* source = "198.51.100.7";
  const char* destination = "192.0.2.1";
  uint8_t protocol = IPPROTO_TCP;
  uint8_t ttl = 64;
  uint16_t fragment = 0x4000;  // flags and offset
  uint16_t id = 7;
  Bytes options = {};
};

inline Bytes ipv4(const Ipv4& of, const Bytes& payload) {
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5 + (of.options.size() / 4 & 0xf);
  ip.tot_len = htons(static_cast<uint16_t>(sizeof(ip) + of.options.size() + payload.size()));
  ip.id = htons(of.id);
  ip.frag_off = htons(of.fragment);
  ip.ttl = of.ttl;
  ip.protocol = of.protocol;
  ip.saddr = address(of.source).word[0];
  ip.daddr = address(of.destination).word[0];
  Bytes header;
  append(header, ip);
  header = header + of.options;
  const uint16_t check = checksum(header.data(), header.size());
  std::memcpy(&header[offsetof(iphdr, check)], &check, sizeof(check));
  return header + payload;
}

inline Bytes ipv6(uint8_t next, const Bytes& payload, uint8_t hops = 64,
                  const char* source = "2001:db8::7", const char* destination = "2001:db8::1") {
  ipv6hdr ip{};
  ip.version = 6;
  ip.payload_len = htons(static_cast<uint16_t>(payload.size()));
  ip.nexthdr = next;
  ip.hop_limit = hops;
  const bl_address from = address(source);
  const bl_address to = address(destination);
  std::memcpy(&ip.saddr, &from, sizeof(from));
  std::memcpy(&ip.daddr, &to, sizeof(to));
  Bytes bytes;
  append(bytes, ip);
  return bytes + payload;
}

enum TcpFlags : uint8_t { kFin = 1, kSyn = 2, kRst = 4, kAck = 16 };

inline Bytes tcp(int flags, uint16_t source = 40'000, uint16_t destination = 80,
                 size_t payload = 0) {
  tcphdr header{};
  header.source = htons(source);
  header.dest = htons(destination);
  header.doff = 5;
  Bytes bytes;
  append(bytes, header);
  bytes[13] = static_cast<uint8_t>(flags);
  bytes.resize(bytes.size() + payload, 0x5a);
  return bytes;
}

inline Bytes udp(uint16_t source = 40'000, uint16_t destination = 53, size_t payload = 4) {
  udphdr header{};
  header.source = htons(source);
  header.dest = htons(destination);
  header.len = htons(static_cast<uint16_t>(sizeof(header) + payload));
  Bytes bytes;
  append(bytes, header);
  bytes.resize(bytes.size() + payload, 0x5a);
  return bytes;
}

inline Bytes icmp(uint8_t type, uint8_t code, const Bytes& rest) {
  Bytes bytes{type, code, 0, 0, 0, 0, 0, 0};
  bytes = bytes + rest;
  const uint16_t check = checksum(bytes.data(), bytes.size());
  std::memcpy(&bytes[2], &check, sizeof(check));
  return bytes;
}

inline Bytes packet4(const Bytes& transport, const Ipv4& of = {}) {
  return ethernet(ETH_P_IP) + ipv4(of, transport);
}
inline Bytes packet6(const Bytes& transport, uint8_t next = IPPROTO_TCP) {
  return ethernet(ETH_P_IPV6) + ipv6(next, transport);
}

// What L2 forwarding makes of a packet to instance `index`.
inline Bytes rewritten(Bytes packet, uint8_t index, size_t ip_offset = ETH_HLEN) {
  const Bytes addresses{2, 0, 0, 0, 1, index, 2, 0, 0, 0, 0, 9};
  std::copy(addresses.begin(), addresses.end(), packet.begin());
  if (packet[ip_offset] >> 4 == 6) {
    --packet[ip_offset + 7];
    return packet;
  }
  --packet[ip_offset + 8];
  const size_t header = (packet[ip_offset] & 0xf) * 4;
  std::memset(&packet[ip_offset + 10], 0, 2);
  const uint16_t check = checksum(&packet[ip_offset], header);
  std::memcpy(&packet[ip_offset + 10], &check, 2);
  return packet;
}

// With the checksum of its TCP, UDP or ICMPv6, after Ethernet and an IP header without options.
inline Bytes summed(Bytes packet) {
  const bool is_ipv4 = packet[ETH_HLEN] >> 4 == 4;
  const size_t start = ETH_HLEN + (is_ipv4 ? 20 : 40);
  const uint8_t protocol = packet[ETH_HLEN + (is_ipv4 ? 9 : 6)];
  const size_t at = start + (protocol == IPPROTO_TCP ? 16 : protocol == IPPROTO_UDP ? 6 : 2);
  const size_t length = packet.size() - start;
  std::memset(&packet[at], 0, 2);
  // The addresses stand right before.
  const size_t addresses = is_ipv4 ? 8 : 32;
  uint16_t check = checksum(&packet[start - addresses], addresses + length,
                            static_cast<uint32_t>(protocol + length));
  if (check == 0 && protocol == IPPROTO_UDP) check = 0xffff;
  std::memcpy(&packet[at], &check, 2);
  return packet;
}

}  // namespace ballast::loader
