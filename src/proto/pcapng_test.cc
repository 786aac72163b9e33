// SPDX-License-Identifier: Apache-2.0
#include "proto/pcapng.h"

#include <gtest/gtest.h>
#include <pcap/pcap.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace ballast::proto {
namespace {

uint32_t word(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

std::string example_packet(const std::vector<uint8_t>& bytes, uint32_t length) {
  PcapngPacket packet;
  packet.time_ns = 1'700'000'000'123'456'789;
  packet.length = length;
  packet.bytes = bytes;
  packet.is_outbound = true;
  packet.id = 77;
  packet.verdict = 3;
  packet.comment = "to web1";
  return pcapng_packet(packet);
}

// Every block's length stands at both ends and is a multiple of four; every option fits.
TEST(Pcapng, BlocksAreWhole) {
  for (size_t size = 0; size < 9; ++size) {
    const std::string packet = example_packet(std::vector<uint8_t>(size, 1), 100);
    const std::string file =
        pcapng_section("ballast") + pcapng_interface("eth0", 128) + packet + packet;
    size_t blocks = 0;
    for (size_t at = 0; at < file.size(); ++blocks) {
      const uint32_t length = word(file, at + 4);
      ASSERT_EQ(length % 4, 0U);
      ASSERT_LE(at + length, file.size());
      ASSERT_EQ(word(file, at + length - 4), length);
      at += length;
    }
    EXPECT_EQ(blocks, 4U);
  }
}

TEST(Pcapng, ThePacketsOptionsSayWhatBecameOfIt) {
  const std::string packet = example_packet({1, 2, 3, 4}, 4);
  const auto has = [&](std::initializer_list<unsigned> bytes) {
    return packet.find(std::string(bytes.begin(), bytes.end())) != std::string::npos;
  };
  EXPECT_TRUE(has({2, 0, 4, 0, 2, 0, 0, 0})) << "outbound";
  EXPECT_TRUE(has({5, 0, 8, 0, 77, 0, 0, 0, 0, 0, 0, 0})) << "packet id";
  EXPECT_TRUE(has({7, 0, 9, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})) << "XDP_TX, by XDP";
  EXPECT_NE(packet.find("to web1"), std::string::npos);
}

// Others' reader is the judge.
TEST(Pcapng, LibpcapReadsIt) {
  char path[] = "/tmp/ballast-pcapng-XXXXXX";
  const int fd = mkstemp(path);
  const std::vector<uint8_t> bytes{0xde, 0xad, 0xbe, 0xef, 0x05};
  const std::string file = pcapng_section("ballast") + pcapng_interface("eth0", 128) +
                           example_packet(bytes, 1500) + example_packet({}, 60);
  ASSERT_EQ(write(fd, file.data(), file.size()), static_cast<ssize_t>(file.size()));
  close(fd);
  char error[PCAP_ERRBUF_SIZE] = "";
  pcap_t* pcap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, error);
  unlink(path);
  ASSERT_NE(pcap, nullptr) << error;
  EXPECT_EQ(pcap_datalink(pcap), DLT_EN10MB);
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  ASSERT_EQ(pcap_next_ex(pcap, &header, &data), 1) << pcap_geterr(pcap);
  EXPECT_EQ(header->caplen, 5U);
  EXPECT_EQ(header->len, 1500U);
  EXPECT_EQ(header->ts.tv_sec, 1'700'000'000);
  EXPECT_EQ(header->ts.tv_usec, 123'456'789);
  EXPECT_EQ(std::memcmp(data, bytes.data(), bytes.size()), 0);
  ASSERT_EQ(pcap_next_ex(pcap, &header, &data), 1) << pcap_geterr(pcap);
  EXPECT_EQ(header->caplen, 0U);
  EXPECT_EQ(pcap_next_ex(pcap, &header, &data), PCAP_ERROR_BREAK);
  pcap_close(pcap);
}

}  // namespace
}  // namespace ballast::proto
