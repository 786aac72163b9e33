// SPDX-License-Identifier: Apache-2.0
// Rows of NAT: what comes out is the packet that somebody who knew the other address would have
// made, checksums by the book.
#include <gtest/gtest.h>
#include <sched.h>

#include "base/random.h"
#include "loader/lb_fixture.h"

namespace ballast::loader {
namespace {

constexpr const char* kClient4 = "198.51.100.7";
constexpr const char* kClient6 = "2001:db8::7";
constexpr const char* kVip4 = "192.0.2.1";
constexpr const char* kVip6 = "2001:db8::1";
constexpr const char* kInstance4 = "10.0.0.1";
constexpr const char* kInstance6 = "fd00::1";

Bytes made(const char* source, const char* destination, uint8_t protocol, const Bytes& transport,
           uint16_t fragment = 0x4000) {
  if (std::string(source).find(':') != std::string::npos)
    return ethernet(ETH_P_IPV6) + ipv6(protocol, transport, 64, source, destination);
  Ipv4 of{.source = source, .destination = destination, .protocol = protocol};
  of.fragment = fragment;
  return ethernet(ETH_P_IP) + ipv4(of, transport);
}

Bytes sent(const char* source, const char* destination, uint8_t protocol, const Bytes& transport) {
  return summed(made(source, destination, protocol, transport));
}

Bytes ip_of(const Bytes& packet) { return {packet.begin() + ETH_HLEN, packet.end()}; }

struct Ends {
  const char* client;
  const char* vip;
  const char* instance;
};
constexpr Ends kBoth[] = {{kClient4, kVip4, kInstance4}, {kClient6, kVip6, kInstance6}};

// 192.0.2.1 and 2001:db8::1 TCP 80 go to port 8080, UDP 53 to 5353 of instance 0 or 3. The kernel
// has no routes, so it is asked to forward.
class LbNatTest : public LbTest {
 protected:
  void SetUp() override {
    static const bool is_alone = unshare(CLONE_NEWNET) == 0;
    if (!is_alone) GTEST_SKIP() << "network namespaces need root";
    LbTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    set_table(4, {0, 0, 0, 1});
    set_vip(kVip6, 80, IPPROTO_TCP, {2, 4});
    set_vip(kVip6, 53, IPPROTO_UDP, {2, 4});
    give_ports(8080);
    for (const Ends& ends : kBoth) {
      set_source(ends, 8080, IPPROTO_TCP, 80);
      set_source(ends, 5353, IPPROTO_UDP, 53);
    }
  }

  void give_ports(uint16_t port) {
    bl_instance nat = instance(BL_METHOD_NAT);
    nat.port_be = htons(port);
    set_instance(0, nat, kInstance4);
    set_instance(3, nat, kInstance6);
  }

  void set_source(const Ends& ends, uint16_t port, uint8_t protocol, uint16_t vip_port) {
    const bl_vip_key key{address(ends.instance), htons(port), protocol, family_of(ends.instance)};
    const uint32_t index = family_of(ends.vip) == BL_FAMILY_IPV4 ? 0 : 3;
    ASSERT_TRUE(program_->nat_sources().set(key, {address(ends.vip), index, htons(vip_port), 0}));
  }

  void open(const Ends& ends, uint16_t port = 40'000) {
    for (const int flags : {kSyn, kAck})
      EXPECT_EQ(run(sent(ends.client, ends.vip, IPPROTO_TCP, tcp(flags, port))).action, XDP_TX);
  }

  int state(const Ends& ends) {
    bl_flow_key key{};
    key.family = family_of(ends.vip);
    key.protocol = IPPROTO_TCP;
    key.source = address(ends.client);
    key.destination = address(ends.vip);
    key.source_port_be = htons(40'000);
    key.destination_port_be = htons(80);
    const auto found = program_->connections().get(key);
    return found && *found ? int{(*found)->state} : -1;
  }

  static uint8_t index_of(const Ends& ends) {
    return family_of(ends.vip) == BL_FAMILY_IPV4 ? 0 : 3;
  }

  void expect_forwarded(const Bytes& in, const Bytes& out, const Ends& ends) {
    const TestRun done = run(in);
    EXPECT_EQ(done.action, XDP_TX) << ends.vip;
    EXPECT_EQ(done.packet, rewritten(out, index_of(ends))) << ends.vip;
  }

  void expect_answered(const Bytes& in, const Bytes& out) {
    const TestRun done = run(in);
    EXPECT_EQ(done.action, XDP_PASS);
    EXPECT_EQ(done.packet, out);
  }
};

TEST_F(LbNatTest, TheDestinationIsTheInstances) {
  for (const Ends& ends : kBoth) {
    for (const size_t payload : {0, 1, 100, 1400}) {
      expect_forwarded(sent(ends.client, ends.vip, IPPROTO_TCP, tcp(kSyn, 7, 80, payload)),
                       sent(ends.client, ends.instance, IPPROTO_TCP, tcp(kSyn, 7, 8080, payload)),
                       ends);
    }
  }
  give_ports(5353);
  for (const Ends& ends : kBoth) {
    expect_forwarded(sent(ends.client, ends.vip, IPPROTO_UDP, udp(7, 53)),
                     sent(ends.client, ends.instance, IPPROTO_UDP, udp(7, 5353)), ends);
  }
}

// Among all source ports there is one whose checksum is 0.
TEST_F(LbNatTest, AUdpChecksumIsNeverMade0AndStays0) {
  give_ports(5353);
  for (uint32_t port = 1; port <= 0xffff; ++port) {
    const auto from = static_cast<uint16_t>(port);
    const TestRun done = run(sent(kClient4, kVip4, IPPROTO_UDP, udp(from, 53)));
    const Bytes wanted = sent(kClient4, kInstance4, IPPROTO_UDP, udp(from, 5353));
    ASSERT_EQ(done.packet, rewritten(wanted, 0)) << port;
  }
  expect_forwarded(made(kClient4, kVip4, IPPROTO_UDP, udp(7, 53)),
                   made(kClient4, kInstance4, IPPROTO_UDP, udp(7, 5353)), kBoth[0]);
}

TEST_F(LbNatTest, AnAnswerComesFromTheVip) {
  for (const Ends& ends : kBoth) {
    const Bytes answer =
        sent(ends.instance, ends.client, IPPROTO_TCP, tcp(kSyn | kAck, 8080, 40'000));
    const Bytes wanted = sent(ends.vip, ends.client, IPPROTO_TCP, tcp(kSyn | kAck, 80, 40'000));
    expect_answered(answer, answer);  // nobody's
    run(sent(ends.client, ends.vip, IPPROTO_TCP, tcp(kSyn)));
    expect_answered(answer, wanted);  // a newcomer's
    run(sent(ends.client, ends.vip, IPPROTO_TCP, tcp(kAck)));
    expect_answered(answer, wanted);
    const Bytes other = sent(ends.instance, ends.client, IPPROTO_TCP, tcp(kAck, 8081, 40'000));
    expect_answered(other, other);
  }
  EXPECT_EQ(count(BL_EVENT_answer), 4U);
  EXPECT_EQ(count(BL_EVENT_answer_by_kernel), 4U);
  give_ports(5353);
  for (const Ends& ends : kBoth) {
    run(sent(ends.client, ends.vip, IPPROTO_UDP, udp(9, 53)));
    expect_answered(sent(ends.instance, ends.client, IPPROTO_UDP, udp(5353, 9, 33)),
                    sent(ends.vip, ends.client, IPPROTO_UDP, udp(53, 9, 33)));
  }
}

TEST_F(LbNatTest, AnswersOfAnotherInstanceAreNot) {
  open(kBoth[0]);
  const bl_vip_key key{address("10.0.0.2"), htons(8080), IPPROTO_TCP, BL_FAMILY_IPV4};
  ASSERT_TRUE(program_->nat_sources().set(key, {address(kVip4), 2, htons(80), 0}));
  const Bytes answer = sent("10.0.0.2", kClient4, IPPROTO_TCP, tcp(kAck, 8080, 40'000));
  expect_answered(answer, answer);
}

TEST_F(LbNatTest, AVipOfAllPortsKeepsThem) {
  bl_instance nat = instance(BL_METHOD_NAT);
  set_instance(1, nat, kInstance4);
  const bl_vip_key key{address(kInstance4), 0, IPPROTO_TCP, BL_FAMILY_IPV4};
  ASSERT_TRUE(program_->nat_sources().set(key, {address("192.0.2.2"), 1, 0, 0}));
  const TestRun done = run(sent(kClient4, "192.0.2.2", IPPROTO_TCP, tcp(kSyn, 7, 443)));
  EXPECT_EQ(done.packet, rewritten(sent(kClient4, kInstance4, IPPROTO_TCP, tcp(kSyn, 7, 443)), 1));
  expect_answered(sent(kInstance4, kClient4, IPPROTO_TCP, tcp(kAck, 443, 7)),
                  sent("192.0.2.2", kClient4, IPPROTO_TCP, tcp(kAck, 443, 7)));
}

TEST_F(LbNatTest, AnswersAdvanceTheConnection) {
  const Ends& ends = kBoth[0];
  const auto answer = [&](int flags) {
    return sent(ends.instance, ends.client, IPPROTO_TCP, tcp(flags, 8080, 40'000));
  };
  open(ends);
  run(answer(kAck));
  EXPECT_EQ(state(ends), BL_CONNECTION_OPEN);
  run(answer(kAck | kFin));
  EXPECT_EQ(state(ends), BL_CONNECTION_CLOSING);
  run(answer(kRst));
  EXPECT_EQ(state(ends), BL_CONNECTION_RESET);
  run(answer(kAck));
  run(answer(kAck | kFin));
  EXPECT_EQ(state(ends), BL_CONNECTION_RESET) << "sent before the instance heard of it";
}

TEST_F(LbNatTest, FragmentsAreTranslatedBothWays) {
  give_ports(5353);
  const Ends& four = kBoth[0];
  const auto fragment = [](const char* from, const char* to, const Bytes& part, uint16_t place) {
    return made(from, to, IPPROTO_UDP, part, place);
  };
  expect_forwarded(fragment(four.client, four.vip, udp(7, 53), 0x2000),
                   fragment(four.client, four.instance, udp(7, 5353), 0x2000), four);
  expect_forwarded(fragment(four.client, four.vip, Bytes(8, 1), 2),
                   fragment(four.client, four.instance, Bytes(8, 1), 2), four);
  expect_answered(fragment(four.instance, four.client, udp(5353, 7), 0x2000),
                  fragment(four.vip, four.client, udp(53, 7), 0x2000));
  expect_answered(fragment(four.instance, four.client, Bytes(8, 1), 2),
                  fragment(four.vip, four.client, Bytes(8, 1), 2));
  const Ends& six = kBoth[1];
  const auto later = [&](const char* from, const char* to, uint8_t place, const Bytes& part) {
    return made(from, to, IPPROTO_FRAGMENT, Bytes{IPPROTO_UDP, 0, 0, place, 0, 0, 0, 5} + part);
  };
  expect_forwarded(later(six.client, six.vip, 1, udp(7, 53)),
                   later(six.client, six.instance, 1, udp(7, 5353)), six);
  expect_forwarded(later(six.client, six.vip, 16, Bytes(8, 1)),
                   later(six.client, six.instance, 16, Bytes(8, 1)), six);
  expect_answered(later(six.instance, six.client, 1, udp(5353, 7)),
                  later(six.vip, six.client, 1, udp(53, 7)));
  expect_answered(later(six.instance, six.client, 16, Bytes(8, 1)),
                  later(six.vip, six.client, 16, Bytes(8, 1)));
}

// An error of `from` to `to` that quotes the first `size` bytes of `quoted`.
Bytes error(const char* from, const char* to, const Bytes& quoted, size_t size) {
  const bool is_ipv4 = quoted[ETH_HLEN] >> 4 == 4;
  Bytes quote = ip_of(quoted);
  quote.resize(std::min(size, quote.size()));
  if (is_ipv4) return made(from, to, IPPROTO_ICMP, icmp(3, 1, quote));
  return summed(made(from, to, IPPROTO_ICMPV6, icmp(1, 4, quote)));
}

TEST_F(LbNatTest, ErrorsAreTranslatedWithTheirQuoteBothWays) {
  for (const Ends& ends : kBoth) {
    const char* router = family_of(ends.vip) == BL_FAMILY_IPV4 ? "203.0.113.1" : "2001:db8:5::1";
    const size_t least = family_of(ends.vip) == BL_FAMILY_IPV4 ? 28 : 48;
    open(ends);
    // Whole, header and 8 bytes, and all between, but not half a checksum.
    for (size_t size = least; size <= least + 40; ++size) {
      if (size == least + 9) continue;
      expect_forwarded(
          error(router, ends.vip,
                sent(ends.vip, ends.client, IPPROTO_TCP, tcp(kAck, 80, 40'000, 20)), size),
          error(router, ends.instance,
                sent(ends.instance, ends.client, IPPROTO_TCP, tcp(kAck, 8080, 40'000, 20)), size),
          ends);
      const Bytes seen = sent(ends.client, ends.instance, IPPROTO_TCP, tcp(kAck, 40'000, 8080, 20));
      const Bytes known = sent(ends.client, ends.vip, IPPROTO_TCP, tcp(kAck, 40'000, 80, 20));
      expect_answered(error(ends.instance, ends.client, seen, size),
                      error(ends.vip, ends.client, known, size));
      expect_answered(error(router, ends.client, seen, size),
                      error(router, ends.client, known, size));
    }
    EXPECT_EQ(state(ends), BL_CONNECTION_OPEN);
    give_ports(5353);
    run(sent(ends.client, ends.vip, IPPROTO_UDP, udp(9, 53)));
    expect_answered(
        error(ends.instance, ends.client,
              sent(ends.client, ends.instance, IPPROTO_UDP, udp(9, 5353)), 100),
        error(ends.vip, ends.client, sent(ends.client, ends.vip, IPPROTO_UDP, udp(9, 53)), 100));
    give_ports(8080);
  }
}

// Cut at every byte, in both directions, a packet is never translated in part.
TEST_F(LbNatTest, CutPackets) {
  for (const Ends& ends : kBoth) {
    open(ends);
    const char* ips[] = {ends.client, ends.vip, ends.instance};
    const Bytes quoted = sent(ips[0], ips[2], IPPROTO_TCP, tcp(kAck, 40'000, 8080));
    const Bytes whole[] = {sent(ips[0], ips[1], IPPROTO_TCP, tcp(kAck, 40'000, 80)),
                           sent(ips[2], ips[0], IPPROTO_TCP, tcp(kAck, 8080, 40'000)),
                           error(ips[2], ips[0], quoted, 100)};
    for (const Bytes& packet : whole) {
      for (size_t size = ETH_HLEN; size < packet.size(); ++size) {
        const Bytes cut(packet.begin(), packet.begin() + static_cast<long>(size));
        const TestRun done = run(cut);
        EXPECT_TRUE(done.action == XDP_DROP || done.packet == cut) << size;
        EXPECT_NE(done.action, XDP_TX) << size;
      }
    }
  }
}

}  // namespace
}  // namespace ballast::loader
