// SPDX-License-Identifier: Apache-2.0
// The balancer names a second instance in GUE, the instance's program hands on to it, once.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "loader/lb_fixture.h"
#include "wire/tunnel.h"

namespace ballast::loader {
namespace {

constexpr size_t kOuter4 = ETH_HLEN;

struct Outer {
  const char* source = "203.0.113.9";
  const char* destination = "203.0.113.1";
  const char* candidate = "203.0.113.2";  // null: no header of GUE's own
};

Bytes gue(const Outer& outer, const Bytes& inner) {
  const bool is_ipv4 = std::string(outer.source).find(':') == std::string::npos;
  Bytes named;
  if (outer.candidate != nullptr) {
    named = {static_cast<uint8_t>(is_ipv4 ? 1 : 4),
             static_cast<uint8_t>(inner[0] >> 4 == 4 ? IPPROTO_IPIP : IPPROTO_IPV6), 0, 0};
    const bl_address who = address(outer.candidate);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&who);
    named.insert(named.end(), bytes, bytes + (is_ipv4 ? 4 : 16));
  }
  const Bytes carried = udp(50'000, BL_GUE_PORT, 0);
  Bytes datagram = carried + named + inner;
  const uint16_t length = htons(static_cast<uint16_t>(datagram.size()));
  std::memcpy(&datagram[4], &length, 2);
  return is_ipv4 ? ethernet(ETH_P_IP) + ipv4({.source = outer.source,
                                              .destination = outer.destination,
                                              .protocol = IPPROTO_UDP},
                                             datagram)
                 : ethernet(ETH_P_IPV6) +
                       ipv6(IPPROTO_UDP, datagram, 64, outer.source, outer.destination);
}

bl_balancer_key key_of(const char* words) {
  bl_balancer_key key{};
  key.address = address(words);
  key.family = std::string(words).find(':') == std::string::npos ? BL_FAMILY_IPV4 : BL_FAMILY_IPV6;
  return key;
}

class DecapTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = DecapProgram::load();
    if (!loaded && !may_load(loaded.error().sys_errno))
      GTEST_SKIP() << "may not load kernel programs: " << loaded.error().message;
    ASSERT_TRUE(loaded) << loaded.error().message;
    program_.emplace(std::move(*loaded));
    for (const char* balancer : {"203.0.113.9", "2001:db8:f::9"})
      ASSERT_TRUE(program_->balancers().set(key_of(balancer), 1));
  }

  TestRun run(const Bytes& packet) {
    const auto done = test_run(program_->fd(), packet);
    EXPECT_TRUE(done) << done.error().message;
    return done ? *done : TestRun{};
  }
  uint64_t count(uint32_t counter) { return *program_->counters().sum(counter); }
  void know(const char* peer) {
    // Test-runs come in at the loopback interface.
    const bl_peer hop{.ifindex = 1, .mac = {2, 0, 0, 0, 5, 5}, .source_mac = {2, 0, 0, 0, 6, 6}};
    ASSERT_TRUE(program_->peers().set(key_of(peer), hop));
  }

  std::optional<DecapProgram> program_;
};

Bytes middle(int flags = kAck) { return ipv4({}, tcp(flags)); }

TEST_F(DecapTest, WhatIsNotHereGoesToTheOneThatWasNamedAndNoFurther) {
  know("203.0.113.2");
  const TestRun first = run(gue({}, middle()));
  ASSERT_EQ(first.action, uint32_t{XDP_TX});
  Bytes expected = gue({.destination = "203.0.113.2", .candidate = "0.0.0.0"}, middle());
  const Bytes addresses{2, 0, 0, 0, 5, 5, 2, 0, 0, 0, 6, 6};
  std::copy(addresses.begin(), addresses.end(), expected.begin());
  EXPECT_EQ(first.packet, expected);
  EXPECT_EQ(count(BL_DECAP_handed_on), 1U);
  const TestRun second = run(first.packet);
  EXPECT_EQ(second.action, uint32_t{XDP_PASS}) << "nobody else is named";
  EXPECT_EQ(Bytes(second.packet.begin() + ETH_HLEN, second.packet.end()), middle());
  EXPECT_EQ(count(BL_DECAP_opened), 1U);
}

TEST_F(DecapTest, LikewiseInIpv6) {
  know("2001:db8:f::2");
  const Outer outer{"2001:db8:f::9", "2001:db8:f::1", "2001:db8:f::2"};
  for (const Bytes& inner : {middle(), ipv6(IPPROTO_TCP, tcp(kAck))}) {
    const TestRun first = run(gue(outer, inner));
    ASSERT_EQ(first.action, uint32_t{XDP_TX});
    const Bytes expected = gue({outer.source, "2001:db8:f::2", "::"}, inner);
    EXPECT_EQ(Bytes(first.packet.begin() + ETH_HLEN, first.packet.end()),
              Bytes(expected.begin() + ETH_HLEN, expected.end()));
    EXPECT_EQ(run(first.packet).action, uint32_t{XDP_PASS});
  }
}

TEST_F(DecapTest, APeerThatIsNotKnownIsAskedFor) {
  EXPECT_EQ(run(gue({}, middle())).action, uint32_t{XDP_DROP});
  EXPECT_EQ(count(BL_DECAP_no_neighbour), 1U);
  const auto wanted = program_->peers().get(key_of("203.0.113.2"));
  ASSERT_TRUE(wanted && *wanted);
  EXPECT_EQ((*wanted)->ifindex, 0U);
}

TEST_F(DecapTest, OnlyTcpFromTheMiddleIsHandedOn) {
  know("203.0.113.2");
  EXPECT_EQ(run(gue({}, middle(kSyn))).action, uint32_t{XDP_PASS}) << "a new connection";
  EXPECT_EQ(run(gue({}, ipv4({.protocol = IPPROTO_UDP}, udp()))).action, uint32_t{XDP_PASS});
  EXPECT_EQ(run(gue({.candidate = nullptr}, middle())).action, uint32_t{XDP_PASS});
  EXPECT_EQ(run(gue({.source = "203.0.113.7"}, middle())).action, uint32_t{XDP_PASS});
  EXPECT_EQ(count(BL_DECAP_stranger), 1U);
  EXPECT_EQ(count(BL_DECAP_handed_on), 0U);
}

TEST_F(DecapTest, CutPacketsAreNotReadBeyondTheirEnd) {
  know("203.0.113.2");
  const Bytes whole = gue({}, middle());
  for (size_t size = ETH_HLEN; size < whole.size(); ++size)
    EXPECT_NE(run(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))).action,
              uint32_t{XDP_TX})
        << size;
  Bytes other = whole;
  other[kOuter4 + sizeof(iphdr) + sizeof(udphdr)] = 2;  // words of private data
  EXPECT_EQ(run(other).action, uint32_t{XDP_DROP});
}

TEST_F(DecapTest, WhatIsHereStays) {
  // A connection over loopback, whose client's segments are then seen as if they were tunnelled.
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(where);
  auto* const any = reinterpret_cast<sockaddr*>(&where);
  ASSERT_EQ(bind(listener, any, size), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  ASSERT_EQ(getsockname(listener, any, &size), 0);
  const uint16_t port = ntohs(where.sin_port);
  ASSERT_EQ(connect(client, any, size), 0);
  ASSERT_EQ(getsockname(client, any, &size), 0);
  know("203.0.113.2");
  const auto inner = [&](uint16_t from) {
    return ipv4({.source = "127.0.0.1", .destination = "127.0.0.1"}, tcp(kAck, from, port));
  };
  EXPECT_EQ(run(gue({}, inner(ntohs(where.sin_port)))).action, uint32_t{XDP_PASS});
  EXPECT_EQ(run(gue({}, inner(1))).action, uint32_t{XDP_TX}) << "a listener alone has it not";
  close(client);
  close(listener);
}

}  // namespace
}  // namespace ballast::loader
