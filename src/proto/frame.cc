// SPDX-License-Identifier: Apache-2.0
#include "proto/frame.h"

#include <algorithm>

namespace ballast::proto {
namespace {

constexpr uint16_t kIpv4Type = 0x0800;
constexpr uint16_t kIpv6Type = 0x86dd;
constexpr uint8_t kTcpProtocol = 6;
constexpr int kMostTags = 4;
constexpr int kMostExtensions = 16;

uint8_t byte_at(std::string_view data, size_t at) { return static_cast<uint8_t>(data[at]); }
uint16_t be16(std::string_view data, size_t at) {
  return static_cast<uint16_t>(byte_at(data, at) << 8 | byte_at(data, at + 1));
}
uint32_t be32(std::string_view data, size_t at) {
  return uint32_t{be16(data, at)} << 16 | be16(data, at + 2);
}

bool is_vlan(uint16_t type) { return type == 0x8100 || type == 0x88a8 || type == 0x9100; }

// A packet's bytes as far as captured, and how long it really is.
struct Packet {
  std::string_view data;
  size_t length = 0;
};

FrameKind parse_tcp(const Packet& packet, TcpSegment& segment) {
  constexpr size_t kLeastHeader = 20;
  const std::string_view data = packet.data;
  if (data.size() < kLeastHeader) return FrameKind::kBroken;
  const size_t header = size_t{byte_at(data, 12)} / 16 * 4;
  if (header < kLeastHeader || header > packet.length) return FrameKind::kBroken;
  segment.source_port = be16(data, 0);
  segment.destination_port = be16(data, 2);
  segment.sequence = be32(data, 4);
  segment.syn = (byte_at(data, 13) & 0x02) != 0;
  segment.payload = data.substr(std::min(header, data.size()));
  segment.missing = packet.length - std::max(header, data.size());
  return FrameKind::kTcp;
}

FrameKind parse_ipv4(std::string_view data, TcpSegment& segment) {
  constexpr size_t kLeastHeader = 20;
  if (data.size() < kLeastHeader) return FrameKind::kBroken;
  const size_t header = size_t{byte_at(data, 0)} % 16 * 4;
  size_t length = be16(data, 2);
  // Written later by the network card, if it cuts large segments itself.
  if (length == 0) length = data.size();
  if (byte_at(data, 0) / 16 != 4 || header < kLeastHeader || length < header)
    return FrameKind::kBroken;
  if ((be16(data, 6) & 0x3fff) != 0) return FrameKind::kFragment;
  if (byte_at(data, 9) != kTcpProtocol) return FrameKind::kOther;
  if (data.size() < header) return FrameKind::kBroken;
  segment.source = segment.destination = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
  std::copy_n(data.begin() + 12, 4, segment.source.begin() + 12);
  std::copy_n(data.begin() + 16, 4, segment.destination.begin() + 12);
  return parse_tcp({data.substr(header, length - header), length - header}, segment);
}

FrameKind parse_ipv6(std::string_view data, TcpSegment& segment) {
  constexpr size_t kHeader = 40;
  if (data.size() < kHeader || byte_at(data, 0) / 16 != 6) return FrameKind::kBroken;
  size_t length = be16(data, 4);
  if (length == 0) length = data.size() - kHeader;
  std::copy_n(data.begin() + 8, 16, segment.source.begin());
  std::copy_n(data.begin() + 24, 16, segment.destination.begin());
  Packet rest{data.substr(kHeader, length), length};
  uint8_t next = byte_at(data, 6);
  for (int i = 0; i < kMostExtensions; ++i) {
    if (next == kTcpProtocol) return parse_tcp(rest, segment);
    // Hop-by-hop, routing, fragment, destination options; the authentication header.
    const bool extension = next == 0 || next == 43 || next == 44 || next == 60 || next == 51;
    if (!extension) return FrameKind::kOther;
    if (rest.data.size() < 8) return FrameKind::kBroken;
    if (next == 44 && (be16(rest.data, 2) & 0xfff9) != 0) return FrameKind::kFragment;
    const size_t units = byte_at(rest.data, 1);
    const size_t size = next == 44 ? 8 : next == 51 ? (units + 2) * 4 : (units + 1) * 8;
    if (size > rest.data.size()) return FrameKind::kBroken;
    next = byte_at(rest.data, 0);
    rest.data.remove_prefix(size);
    rest.length -= size;
  }
  return FrameKind::kOther;
}

FrameKind parse_typed(uint16_t type, std::string_view data, TcpSegment& segment) {
  for (int i = 0; i < kMostTags && is_vlan(type); ++i) {
    if (data.size() < 4) return FrameKind::kBroken;
    type = be16(data, 2);
    data.remove_prefix(4);
  }
  if (type == kIpv4Type) return parse_ipv4(data, segment);
  return type == kIpv6Type ? parse_ipv6(data, segment) : FrameKind::kOther;
}

FrameKind parse_null(std::string_view frame, TcpSegment& segment) {
  if (frame.size() < 4) return FrameKind::kBroken;
  const uint32_t family = be32(frame, 0);
  const uint32_t swapped = __builtin_bswap32(family);
  frame.remove_prefix(4);
  switch (std::min(family, swapped)) {
    case 2:
      return parse_ipv4(frame, segment);
    case 10:  // Linux and the BSDs differ
    case 24:
    case 28:
    case 30:
      return parse_ipv6(frame, segment);
    default:
      return FrameKind::kOther;
  }
}

}  // namespace

FrameKind parse_frame(LinkType link, std::string_view frame, TcpSegment& segment) {
  switch (link) {
    case LinkType::kEthernet:
      if (frame.size() < 14) return FrameKind::kBroken;
      return parse_typed(be16(frame, 12), frame.substr(14), segment);
    case LinkType::kLinuxCooked:
      if (frame.size() < 16) return FrameKind::kBroken;
      return parse_typed(be16(frame, 14), frame.substr(16), segment);
    case LinkType::kLinuxCooked2:
      if (frame.size() < 20) return FrameKind::kBroken;
      return parse_typed(be16(frame, 0), frame.substr(20), segment);
    case LinkType::kNull:
      return parse_null(frame, segment);
    case LinkType::kRaw:
      break;
  }
  if (frame.empty()) return FrameKind::kBroken;
  switch (byte_at(frame, 0) / 16) {
    case 4:
      return parse_ipv4(frame, segment);
    case 6:
      return parse_ipv6(frame, segment);
    default:
      return FrameKind::kOther;
  }
}

}  // namespace ballast::proto
