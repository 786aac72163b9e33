// SPDX-License-Identifier: Apache-2.0
// Finds the TCP segment in a captured frame. Sources: RFC 791, 8200, 9293; IEEE 802.1Q; and
// https://www.tcpdump.org/linktypes.html for what stands before IP.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ballast::proto {

enum class LinkType : uint8_t {
  kEthernet,
  kNull,          // BSD loopback: four bytes of address family, in either byte order
  kRaw,           // IPv4 or IPv6, told by its first four bits
  kLinuxCooked,   // of `tcpdump -i any`
  kLinuxCooked2,  // its second form
};

struct TcpSegment {
  std::array<uint8_t, 16> source{};  // IPv4 as ::ffff:a.b.c.d
  std::array<uint8_t, 16> destination{};
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  uint32_t sequence = 0;
  bool syn = false;
  std::string_view payload;  // in the frame, without what pads it
  size_t missing = 0;        // bytes after the payload that the capture cut off
};

enum class FrameKind : uint8_t {
  kTcp,
  kOther,     // whole as far as looked at, and not TCP over IP
  kFragment,  // of an IP packet: not put together
  kBroken,    // too short, or lengths that contradict each other
};

// `segment` is set for kTcp only; its payload points into the frame.
FrameKind parse_frame(LinkType link, std::string_view frame, TcpSegment& segment);

}  // namespace ballast::proto
