// SPDX-License-Identifier: Apache-2.0
#include "proto/frame.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace ballast::proto {
namespace {

std::string be16(size_t value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
}

std::string tcp(const std::string& payload, char flags = 0x18, size_t options = 0) {
  return be16(40'000) + be16(6379) + std::string("\x01\x02\x03\x04", 4) + std::string(4, '\0') +
         static_cast<char>((5 + options) << 4) + flags + std::string(6, '\0') +
         std::string(4 * options, '\1') + payload;
}

std::string ipv4(const std::string& inside, char protocol = 6, size_t fragment = 0,
                 size_t options = 0) {
  return static_cast<char>(0x45 + options) + std::string(1, '\0') +
         be16(20 + 4 * options + inside.size()) + std::string(2, '\0') + be16(fragment) + '\x40' +
         protocol + std::string(2, '\0') + std::string("\x0a\0\0\1\x0a\0\0\2", 8) +
         std::string(4 * options, '\1') + inside;
}

std::string ipv6(const std::string& inside, char next = 6) {
  return std::string("\x60\0\0\0", 4) + be16(inside.size()) + next + '\x40' +
         std::string(15, '\0') + '\1' + std::string(15, '\0') + '\2' + inside;
}

std::string ethernet(const std::string& inside, size_t type = 0x0800,
                     const std::string& tags = "") {
  return std::string(12, 'm') + tags + be16(type) + inside;
}

FrameKind kind_of(LinkType link, const std::string& frame, TcpSegment& segment) {
  segment = {};
  return parse_frame(link, frame, segment);
}

void expect_segment(LinkType link, const std::string& frame, const std::string& payload) {
  TcpSegment segment;
  ASSERT_EQ(kind_of(link, frame, segment), FrameKind::kTcp);
  EXPECT_EQ(segment.payload, payload);
  EXPECT_EQ(segment.source_port, 40'000);
  EXPECT_EQ(segment.destination_port, 6379);
  EXPECT_EQ(segment.sequence, 0x01020304U);
  EXPECT_EQ(segment.source[15], 1);
  EXPECT_EQ(segment.destination[15], 2);
  EXPECT_EQ(segment.missing, 0U);
}

TEST(Frame, EveryLinkTypeGivesTheSegment) {
  const std::string four = ipv4(tcp("PING"));
  const std::string six = ipv6(tcp("PING"));
  expect_segment(LinkType::kEthernet, ethernet(four), "PING");
  expect_segment(LinkType::kEthernet, ethernet(six, 0x86dd), "PING");
  expect_segment(LinkType::kEthernet, ethernet(four, 0x0800, "\x81" + std::string("\0\0\5", 3)),
                 "PING");
  expect_segment(LinkType::kEthernet,
                 ethernet(six, 0x86dd,
                          "\x88\xa8" + std::string("\0\5", 2) + "\x81" + std::string("\0\0\5", 3)),
                 "PING");
  expect_segment(LinkType::kRaw, four, "PING");
  expect_segment(LinkType::kRaw, six, "PING");
  expect_segment(LinkType::kNull, std::string("\2\0\0\0", 4) + four, "PING");
  expect_segment(LinkType::kNull, std::string("\0\0\0\2", 4) + four, "PING");
  for (const int family : {10, 24, 28, 30})
    expect_segment(LinkType::kNull, std::string(3, 0) + static_cast<char>(family) + six, "PING");
  expect_segment(LinkType::kLinuxCooked, std::string(14, 'c') + be16(0x0800) + four, "PING");
  expect_segment(LinkType::kLinuxCooked2, be16(0x86dd) + std::string(18, 'c') + six, "PING");
}

TEST(Frame, OptionsExtensionsAndPaddingAreNoPayload) {
  expect_segment(LinkType::kRaw, ipv4(tcp("x", 0x18, 3), 6, 0, 5), "x");
  expect_segment(LinkType::kEthernet, ethernet(ipv4(tcp("")) + std::string(6, '\0')), "");
  const std::string hop = std::string(1, '\x3c') + std::string(7, '\0');        // then: options
  const std::string options = std::string("\x06\x01", 2) + std::string(14, 0);  // then: TCP
  expect_segment(LinkType::kRaw, ipv6(hop + options + tcp("x"), 0), "x");
  // Whole, though in a fragment header.
  expect_segment(LinkType::kRaw, ipv6(std::string("\6\0\0\0", 4) + "abcd" + tcp("x"), 44), "x");
  std::string offloaded = ipv4(tcp("long"));
  offloaded[2] = offloaded[3] = 0;
  expect_segment(LinkType::kRaw, offloaded, "long");
}

TEST(Frame, WhatIsNotTcpIsToldApart) {
  TcpSegment segment;
  const std::string packet = ipv4(tcp("x"));
  EXPECT_EQ(kind_of(LinkType::kEthernet, ethernet(packet, 0x0806), segment), FrameKind::kOther);
  EXPECT_EQ(kind_of(LinkType::kRaw, ipv4("x", 17), segment), FrameKind::kOther);
  EXPECT_EQ(kind_of(LinkType::kRaw, ipv6("x", 58), segment), FrameKind::kOther);
  EXPECT_EQ(kind_of(LinkType::kRaw, ipv4(tcp("x"), 6, 0x2000), segment), FrameKind::kFragment);
  EXPECT_EQ(kind_of(LinkType::kRaw, ipv4("later", 6, 100), segment), FrameKind::kFragment);
  EXPECT_EQ(
      kind_of(LinkType::kRaw, ipv6(std::string("\6\0\0\1", 4) + "abcd" + tcp("x"), 44), segment),
      FrameKind::kFragment);
  std::string short_header = packet;
  short_header[32] = 0x10;  // the segment's header: 4 bytes
  EXPECT_EQ(kind_of(LinkType::kRaw, short_header, segment), FrameKind::kBroken);
  EXPECT_EQ(kind_of(LinkType::kRaw, "", segment), FrameKind::kBroken);
}

TEST(Frame, ACutFrameSaysHowMuchIsMissing) {
  const std::string whole = ethernet(ipv4(tcp("0123456789")));
  TcpSegment segment;
  for (size_t size = 0; size < whole.size(); ++size) {
    const FrameKind kind = kind_of(LinkType::kEthernet, whole.substr(0, size), segment);
    if (size < 54) {
      EXPECT_NE(kind, FrameKind::kTcp) << size;
      continue;
    }
    ASSERT_EQ(kind, FrameKind::kTcp) << size;
    EXPECT_EQ(segment.payload.size(), size - 54);
    EXPECT_EQ(segment.missing, 64 - size);
  }
}

}  // namespace
}  // namespace ballast::proto
