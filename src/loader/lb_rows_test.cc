// SPDX-License-Identifier: Apache-2.0
// Rows of the packet path: packet in, action, packet out, what was counted.
#include <gtest/gtest.h>
#include <algorithm>
#include <iterator>

#include "loader/lb_fixture.h"

namespace ballast::loader {
namespace {

Bytes with(Bytes packet, size_t offset, uint8_t value) {
  packet[offset] = value;
  return packet;
}

struct Row {
  const char* name;
  Bytes in;
  uint32_t action;
  Bytes out;  // empty: as it came in
  Counts counts;
};

const Bytes kSynPacket = packet4(tcp(kSyn));
const Bytes kExtensions{IPPROTO_DSTOPTS, 0, 1, 4, 0, 0, 0, 0, IPPROTO_TCP, 0, 1, 4, 0, 0, 0, 0};

// What is refused, and what of it is another's.
std::vector<Row> refused_rows() {
  Ipv4 datagram;
  datagram.protocol = IPPROTO_UDP;
  Ipv4 later;
  later.fragment = 100;
  Ipv4 later_other = later;
  later_other.destination = "192.0.2.77";
  const Bytes dns = packet4(udp(), datagram);
  const Counts passed{{"passed", 1}};
  const Counts malformed{{"malformed", 1}};
  return {
      {"header length 4", with(kSynPacket, 14, 0x44), XDP_DROP, {}, malformed},
      {"length below the header's", with(kSynPacket, 17, 19), XDP_DROP, {}, malformed},
      {"length beyond the packet", with(kSynPacket, 17, 41), XDP_DROP, {}, malformed},
      {"TCP header length 4", with(kSynPacket, 46, 0x40), XDP_DROP, {}, malformed},
      {"UDP length 7", with(dns, 39, 7), XDP_DROP, {}, malformed},
      {"later fragment", packet4(tcp(0), later), XDP_DROP, {}, {{"fragment_unknown", 1}}},
      {"another's fragment", packet4(tcp(0), later_other), XDP_PASS, {}, passed},
      {"authentication header",
       packet6(tcp(kSyn), IPPROTO_AH),
       XDP_DROP,
       {},
       {{"extension_header", 1}}},
      {"options beyond the packet",
       packet6({IPPROTO_TCP, 200, 0, 0, 0, 0, 0, 0}, IPPROTO_DSTOPTS),
       XDP_DROP,
       {},
       malformed},
  };
}

std::vector<Row> rows() {
  const Ipv4 no_options;
  Ipv4 options;
  options.options = {1, 1, 1, 1, 7, 3, 4, 0};
  Ipv4 all_ports;
  all_ports.destination = "192.0.2.2";
  Ipv4 datagram;
  datagram.protocol = IPPROTO_UDP;
  Ipv4 other;
  other.destination = "192.0.2.77";
  Ipv4 last_hop;
  last_hop.ttl = 1;
  Ipv4 last_fragment = last_hop;
  last_fragment.protocol = IPPROTO_UDP;
  last_fragment.fragment = 0x2000;
  Ipv4 sctp;
  sctp.protocol = IPPROTO_SCTP;
  const Bytes tagged = ethernet(ETH_P_IP, {5}) + ipv4(no_options, tcp(kSyn));
  const Bytes twice = ethernet(ETH_P_IP, {5, 6}) + ipv4(no_options, tcp(kSyn));
  const Bytes six = packet6(tcp(kSyn));
  const Bytes extended = packet6(kExtensions + tcp(kSyn), IPPROTO_HOPOPTS);
  const Bytes with_options = packet4(tcp(kSyn), options);
  const Bytes any = packet4(tcp(kSyn, 1, 9999), all_ports);
  const Bytes dns = packet4(udp(), datagram);
  const Bytes dns6 = packet6(udp(), IPPROTO_UDP);
  const Counts chosen{{"chosen", 1}};
  const Counts passed{{"passed", 1}};
  return {
      {"TCP over IPv4", kSynPacket, XDP_TX, rewritten(kSynPacket, 0), chosen},
      {"UDP over IPv4", dns, XDP_TX, rewritten(dns, 0), chosen},
      {"TCP over IPv6", six, XDP_TX, rewritten(six, 0), chosen},
      {"UDP over IPv6", dns6, XDP_TX, rewritten(dns6, 0), chosen},
      {"one VLAN tag", tagged, XDP_TX, rewritten(tagged, 0, 18), chosen},
      {"two VLAN tags", twice, XDP_TX, rewritten(twice, 0, 22), chosen},
      {"IP options", with_options, XDP_TX, rewritten(with_options, 0), chosen},
      {"extension headers", extended, XDP_TX, rewritten(extended, 0), chosen},
      {"any port", any, XDP_TX, rewritten(any, 1), chosen},
      {"middle of a connection",
       packet4(tcp(kAck)),
       XDP_TX,
       rewritten(packet4(tcp(kAck)), 0),
       {{"chosen", 1}, {"chosen_late", 1}}},
      {"no VIP's port", packet4(tcp(kSyn, 1, 81)), XDP_PASS, {}, passed},
      {"no VIP's protocol", packet4(udp(1, 80), datagram), XDP_PASS, {}, passed},
      {"no VIP's address", packet4(tcp(kSyn), other), XDP_PASS, {}, passed},
      {"SCTP", packet4(tcp(kSyn), sctp), XDP_PASS, {}, passed},
      {"ARP", with(with(kSynPacket, 12, 8), 13, 6), XDP_PASS, {}, passed},
      {"version 5", with(kSynPacket, 14, 0x55), XDP_PASS, {}, passed},
      {"last hop of a fragment",
       packet4(udp(), last_fragment),
       XDP_DROP,
       {},
       {{"chosen", 1}, {"hop_limit", 1}}},
  };
}

TEST_F(LbTest, Rows) {
  std::vector<Row> all = rows();
  std::ranges::move(refused_rows(), std::back_inserter(all));
  for (const Row& row : all) {
    SetUp();  // nothing is known
    if (IsSkipped()) return;
    const TestRun done = run(row.in);
    EXPECT_EQ(done.action, row.action) << row.name;
    if (row.action != XDP_DROP) {
      EXPECT_EQ(done.packet, row.out.empty() ? row.in : row.out) << row.name;
    }
    EXPECT_EQ(counts(), row.counts) << row.name;
  }
}

// A packet cut at every byte is passed while its destination cannot be read, and then dropped with
// the reason; never forwarded.
TEST_F(LbTest, CutPackets) {
  const Bytes six = packet6(tcp(kSyn));
  const Bytes tagged = ethernet(ETH_P_IP, {5, 6}) + ipv4({}, tcp(kSyn));
  const Bytes extended = packet6(kExtensions + tcp(kSyn), IPPROTO_HOPOPTS);
  const Bytes error = packet4(
      icmp(3, 1, ipv4({.source = "192.0.2.1", .destination = "198.51.100.7"}, tcp(kAck, 80, 9))),
      {.protocol = IPPROTO_ICMP});
  const std::vector<std::pair<Bytes, size_t>> whole{
      {kSynPacket, 34}, {six, 54}, {tagged, 42}, {extended, 54}, {error, 34}};
  for (const auto& [packet, readable] : whole) {
    for (size_t size = ETH_HLEN; size < packet.size(); ++size) {
      const uint64_t dropped = count(BL_DROP_malformed);
      const TestRun done = run(Bytes(packet.begin(), packet.begin() + static_cast<long>(size)));
      EXPECT_EQ(done.action, size < readable ? XDP_PASS : XDP_DROP) << size;
      EXPECT_EQ(count(BL_DROP_malformed) - dropped, size < readable ? 0U : 1U) << size;
    }
    EXPECT_EQ(run(packet).action, XDP_TX);
  }
}

struct Tunnel {
  const char* instance;
  bl_method method;
  size_t overhead;
};

TEST_F(LbTest, TunnelsWrapThePacketAndSayItsLength) {
  const std::vector<Tunnel> tunnels{{"10.0.0.1", BL_METHOD_IPIP, 20},
                                    {"10.0.0.1", BL_METHOD_GUE, 28},
                                    {"2001:db8:f::1", BL_METHOD_IPIP, 40},
                                    {"2001:db8:f::1", BL_METHOD_GUE, 48}};
  for (const Tunnel& tunnel : tunnels) {
    set_instance(0, instance(tunnel.method), tunnel.instance);
    for (const Bytes& in : {packet4(tcp(kSyn, 40'000, 80, 33)), packet6(tcp(kSyn)),
                            ethernet(ETH_P_IPV6, {9}) + ipv6(IPPROTO_TCP, tcp(kSyn)),
                            ethernet(ETH_P_IP, {5, 6}) + ipv4({}, tcp(kSyn))}) {
      const size_t link = in[12] == 0x88 && in[13] == 0xa8 ? 22 : in[12] == 0x81 ? 18 : 14;
      const bool inner4 = in[link] >> 4 == 4;
      const bool outer4 = family_of(tunnel.instance) == BL_FAMILY_IPV4;
      const TestRun done = run(in);
      ASSERT_EQ(done.action, XDP_TX);
      ASSERT_EQ(done.packet.size(), in.size() + tunnel.overhead);
      const uint8_t* outer = &done.packet[link];
      EXPECT_EQ(Bytes(&done.packet[12], outer - 2), Bytes(&in[12], &in[link - 2]));
      EXPECT_EQ(outer[-2] << 8 | outer[-1], outer4 ? ETH_P_IP : ETH_P_IPV6);
      const Bytes inside = rewritten(in, 0, link);
      EXPECT_EQ(Bytes(outer + tunnel.overhead, outer + tunnel.overhead + in.size() - link),
                Bytes(inside.begin() + static_cast<long>(link), inside.end()));
      const uint8_t inner = tunnel.method == BL_METHOD_GUE ? IPPROTO_UDP
                            : inner4                       ? IPPROTO_IPIP
                                                           : IPPROTO_IPV6;
      EXPECT_EQ(outer[outer4 ? 9 : 6], inner);
      const size_t said =
          outer4 ? size_t{outer[2]} << 8 | outer[3] : 40U + (outer[4] << 8 | outer[5]);
      EXPECT_EQ(said, done.packet.size() - link);
      if (outer4) {
        EXPECT_EQ(checksum(outer, 20), 0);
      }
      if (tunnel.method != BL_METHOD_GUE) continue;
      const uint8_t* header = outer + tunnel.overhead - 8;
      EXPECT_EQ(header[2] << 8 | header[3], BL_GUE_PORT);
      EXPECT_EQ(static_cast<size_t>(header[4] << 8 | header[5]), in.size() - link + 8);
    }
  }
}

TEST_F(LbTest, WhatDoesNotFitIsAnsweredWithTheMtuThatDoes) {
  set_instance(0, instance(BL_METHOD_IPIP, 1500), "10.0.0.1");
  EXPECT_EQ(run(packet4(tcp(kSyn, 1, 80, 1440))).action, XDP_TX);
  const Bytes in = packet4(tcp(kSyn, 1, 80, 1441));
  const TestRun done = run(in);
  ASSERT_EQ(done.action, XDP_TX);
  ASSERT_EQ(done.packet.size(), 14U + 20 + 8 + 548);
  EXPECT_EQ(count(BL_DROP_too_big_answered), 1U);
  const uint8_t* ip = &done.packet[14];
  EXPECT_EQ(Bytes(&done.packet[0], &done.packet[6]), Bytes(&in[6], &in[12]));
  EXPECT_EQ(checksum(ip, 20), 0);
  EXPECT_EQ(ip[6] << 8 | ip[7], 0) << "fragment field";
  EXPECT_EQ(Bytes(ip + 12, ip + 16), Bytes(&in[30], &in[34]));
  EXPECT_EQ(Bytes(ip + 16, ip + 20), Bytes(&in[26], &in[30]));
  EXPECT_EQ(checksum(ip + 20, 556), 0);
  EXPECT_EQ(ip[20], 3);
  EXPECT_EQ(ip[21], 4);
  EXPECT_EQ(ip[26] << 8 | ip[27], 1480);
  EXPECT_EQ(Bytes(ip + 28, ip + 576), Bytes(&in[14], &in[562]));
  Ipv4 may_be_cut;
  may_be_cut.fragment = 0;
  EXPECT_EQ(run(packet4(tcp(kSyn, 1, 80, 1441), may_be_cut)).action, XDP_DROP);
  EXPECT_EQ(count(BL_DROP_too_big), 1U);
}

TEST_F(LbTest, WhatDoesNotFitIsAnsweredInIpv6) {
  set_instance(0, instance(BL_METHOD_GUE, 1500), "2001:db8:f::1");
  EXPECT_EQ(run(packet6(tcp(kSyn, 1, 80, 1392))).action, XDP_TX);
  const Bytes in = packet6(tcp(kSyn, 1, 80, 1393));
  const TestRun done = run(in);
  ASSERT_EQ(done.action, XDP_TX);
  ASSERT_EQ(done.packet.size(), 14U + 1280);
  const uint8_t* ip = &done.packet[14];
  EXPECT_EQ(Bytes(ip + 8, ip + 24), Bytes(&in[38], &in[54]));
  EXPECT_EQ(ip[40], 2);
  EXPECT_EQ(ip[46] << 8 | ip[47], 1452);
  // The pseudo header's length and next header, then the addresses and the message.
  EXPECT_EQ(checksum(ip + 8, 1272, 1240 + IPPROTO_ICMPV6), 0);
}

TEST_F(LbTest, TheSenderIsToldThatItsHopsAreUsedUp) {
  Ipv4 last_hop;
  last_hop.ttl = 1;
  for (const size_t payload : {0, 3, 400, 1400}) {
    const Bytes in = packet4(tcp(kSyn, 1, 80, payload), last_hop);
    const TestRun done = run(in);
    ASSERT_EQ(done.action, XDP_TX);
    const size_t quote = std::min<size_t>((in.size() - 14) / 4 * 4, 548);
    ASSERT_EQ(done.packet.size(), 14 + 28 + quote);
    const uint8_t* ip = &done.packet[14];
    EXPECT_EQ(Bytes(&done.packet[0], &done.packet[6]), Bytes(&in[6], &in[12]));
    EXPECT_EQ(checksum(ip, 20), 0);
    EXPECT_EQ(ip[2] << 8 | ip[3], static_cast<int>(28 + quote));
    EXPECT_EQ(Bytes(ip + 12, ip + 20), Bytes(&in[30], &in[34]) + Bytes(&in[26], &in[30]));
    EXPECT_EQ(Bytes({ip[20], ip[21]}), Bytes({11, 0}));
    EXPECT_EQ(checksum(ip + 20, 8 + quote), 0);
    EXPECT_EQ(Bytes(ip + 28, ip + 28 + quote), Bytes(&in[14], &in[14] + quote));
  }
  for (const size_t payload : {0, 1, 1400}) {
    Bytes in = packet6(tcp(kSyn, 1, 80, payload));
    in[21] = 1;
    const TestRun done = run(in);
    ASSERT_EQ(done.action, XDP_TX);
    const size_t quote = std::min<size_t>((in.size() - 14) / 4 * 4, 1232);
    ASSERT_EQ(done.packet.size(), 14 + 48 + quote);
    const uint8_t* ip = &done.packet[14];
    EXPECT_EQ(Bytes(ip + 8, ip + 40), Bytes(&in[38], &in[54]) + Bytes(&in[22], &in[38]));
    EXPECT_EQ(Bytes({ip[40], ip[41]}), Bytes({3, 0}));
    EXPECT_EQ(Bytes(ip + 44, ip + 48), Bytes(4));
    EXPECT_EQ(checksum(ip + 8, 40 + quote, static_cast<uint32_t>(8 + quote + IPPROTO_ICMPV6)), 0);
  }
  EXPECT_EQ(count(BL_DROP_hop_limit_answered), 7U);
}

TEST_F(LbTest, ErrorsAreNoMoreThanTheBudget) {
  LbSettings few{kSeed, 1024, 1024, 64};
  few.errors_per_second = 2;
  load(few);
  if (IsSkipped()) return;
  Ipv4 last_hop;
  last_hop.ttl = 1;
  for (int i = 0; i < 100; ++i) run(packet4(tcp(kSyn), last_hop));
  EXPECT_GE(count(BL_DROP_hop_limit), 90U);
  EXPECT_GE(count(BL_DROP_hop_limit_answered), 2U);
}

TEST_F(LbTest, AnErrorGoesWhereTheConnectionGoesThatItQuotes) {
  const Bytes sent = packet4(tcp(kSyn, 40'000, 80));
  EXPECT_EQ(instance_of(sent), 0);
  EXPECT_EQ(instance_of(packet4(tcp(kAck, 40'000, 80))), 0);
  set_table(0, {0, 0, 1, 0});
  const Ipv4 from_router{.source = "198.18.0.1", .protocol = IPPROTO_ICMP};
  const Ipv4 quoted{.source = "192.0.2.1", .destination = "198.51.100.7"};
  const Bytes answer = ipv4(quoted, tcp(kAck, 80, 40'000));
  const Bytes eight(answer.begin(), answer.begin() + 28);
  EXPECT_EQ(instance_of(packet4(icmp(3, 4, answer), from_router)), 0);
  EXPECT_EQ(instance_of(packet4(icmp(3, 4, eight), from_router)), 0);
  EXPECT_EQ(instance_of(packet4(icmp(11, 0, ipv4(quoted, tcp(kAck, 80, 1))), from_router)), 2);
  EXPECT_EQ(count(BL_EVENT_icmp_error), 3U);
  const Bytes seven(answer.begin(), answer.begin() + 23);
  EXPECT_EQ(run(packet4(icmp(3, 4, seven), from_router)).action, XDP_DROP);
  const Bytes foreign =
      ipv4({.source = "192.0.2.9", .destination = "198.51.100.7"}, tcp(kAck, 80, 40'000));
  EXPECT_EQ(run(packet4(icmp(3, 4, foreign), from_router)).action, XDP_DROP);
  EXPECT_EQ(count(BL_DROP_quote), 2U);
  const Bytes six = ipv6(IPPROTO_TCP, tcp(kAck, 80, 7), 64, "2001:db8::1", "2001:db8::7");
  EXPECT_EQ(instance_of(packet6(icmp(2, 0, six), IPPROTO_ICMPV6)), 2);
  EXPECT_EQ(instance_of(packet6(icmp(2, 0, Bytes(six.begin(), six.begin() + 48)), IPPROTO_ICMPV6)),
            2);
}

TEST_F(LbTest, EchoRequestsToAVipAreAnswered) {
  const Ipv4 of{.protocol = IPPROTO_ICMP};
  const Bytes in = packet4(icmp(8, 0, {1, 2, 3, 4}), of);
  const TestRun done = run(in);
  EXPECT_EQ(done.action, XDP_TX);
  EXPECT_EQ(done.packet[34], 0);
  EXPECT_EQ(checksum(&done.packet[14], 20), 0);
  EXPECT_EQ(checksum(&done.packet[34], 12), 0);
  EXPECT_EQ(Bytes(&done.packet[26], &done.packet[34]),
            Bytes(&in[30], &in[34]) + Bytes(&in[26], &in[30]));
  Ipv4 other = of;
  other.destination = "192.0.2.77";
  EXPECT_EQ(run(packet4(icmp(8, 0, {}), other)).action, XDP_PASS);
  EXPECT_EQ(run(packet4(icmp(0, 0, {}), of)).action, XDP_PASS);
  EXPECT_EQ(run(packet6(icmp(128, 0, {}), IPPROTO_ICMPV6)).action, XDP_TX);
  EXPECT_EQ(count(BL_EVENT_echo_answered), 2U);
}

TEST_F(LbTest, FragmentsFollowTheirFirst) {
  Ipv4 first;
  first.protocol = IPPROTO_UDP;
  first.fragment = 0x2000;
  Ipv4 second = first;
  second.fragment = 0x0003;
  EXPECT_EQ(instance_of(packet4(udp(), first)), 0);
  set_table(0, {0, 0, 1, 0});
  EXPECT_EQ(instance_of(packet4(Bytes(8, 1), second)), 0);
  second.id = 8;
  EXPECT_EQ(run(packet4(Bytes(8, 1), second)).action, XDP_DROP);
  const Bytes head6{IPPROTO_UDP, 0, 0, 1, 0, 0, 0, 5};
  const Bytes tail6{IPPROTO_UDP, 0, 0, 8, 0, 0, 0, 5};
  EXPECT_EQ(instance_of(packet6(head6 + udp(), IPPROTO_FRAGMENT)), 2);
  set_table(0, {1, 0, 0, 0});
  EXPECT_EQ(instance_of(packet6(tail6 + Bytes(8, 1), IPPROTO_FRAGMENT)), 2);
}

TEST_F(LbTest, AMissingNeighbourAndAMissingInstanceAreCounted) {
  bl_instance nowhere{};
  nowhere.state = BL_INSTANCE_UP;
  ASSERT_TRUE(program_->instances().set(0, nowhere));
  EXPECT_EQ(run(kSynPacket).action, XDP_DROP);
  EXPECT_EQ(count(BL_DROP_no_neighbour), 1U);
  set_table(2, {0, 0, 0, 0});
  Ipv4 other;
  other.destination = "192.0.2.2";
  EXPECT_EQ(run(packet4(tcp(kSyn), other)).action, XDP_DROP);
  EXPECT_EQ(count(BL_DROP_no_instance), 1U);
}

}  // namespace
}  // namespace ballast::loader
