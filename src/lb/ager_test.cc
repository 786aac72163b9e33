// SPDX-License-Identifier: Apache-2.0
#include "lb/ager.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <time.h>

#include <cerrno>

namespace ballast::lb {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr AgeLimits kLimits{
    .tcp_open_ns = 100 * kSecondNs, .tcp_closing_ns = 10 * kSecondNs, .udp_ns = 30 * kSecondNs};

bl_flow_key flow(uint16_t port, uint8_t protocol = IPPROTO_TCP) {
  bl_flow_key key{};
  key.source_port_be = htons(port);
  key.protocol = protocol;
  key.family = BL_FAMILY_IPV4;
  return key;
}

bl_connection seen_at(uint64_t ns, bl_connection_state state = BL_CONNECTION_OPEN,
                      uint32_t instance = 0) {
  bl_connection connection{};
  connection.last_seen_ns = ns;
  connection.state = static_cast<uint8_t>(state);
  connection.instance = instance;
  return connection;
}

TEST(IsOver, ByProtocolStateAndIdleTime) {
  const uint64_t now = 1000 * kSecondNs;
  const auto idle = [&](uint64_t seconds) { return now - seconds * kSecondNs; };
  EXPECT_FALSE(is_over(flow(1), seen_at(idle(99)), kLimits, now));
  EXPECT_TRUE(is_over(flow(1), seen_at(idle(101)), kLimits, now));
  for (const auto state : {BL_CONNECTION_CLOSING, BL_CONNECTION_RESET}) {
    EXPECT_FALSE(is_over(flow(1), seen_at(idle(9), state), kLimits, now));
    EXPECT_TRUE(is_over(flow(1), seen_at(idle(11), state), kLimits, now))
        << "the client closed, and the server's half is not seen";
  }
  EXPECT_FALSE(is_over(flow(1, IPPROTO_UDP), seen_at(idle(29)), kLimits, now));
  EXPECT_TRUE(is_over(flow(1, IPPROTO_UDP), seen_at(idle(31)), kLimits, now));
  EXPECT_FALSE(is_over(flow(1), seen_at(now + kSecondNs), kLimits, now))
      << "a packet came after the time was read";
}

TEST(Ager, DeletesWhatIsOverAndCountsTheRest) {
  const auto program = loader::LbProgram::load({.hash_seed = 1, .connections = 4096});
  if (!program) {
    const int error = program.error().sys_errno;
    ASSERT_TRUE(error == EPERM || error == ENOSYS) << program.error().message;
    GTEST_SKIP() << "may not load kernel programs: " << program.error().message;
  }
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  const uint64_t now = static_cast<uint64_t>(ts.tv_sec) * kSecondNs;
  const AgeLimits short_limits{.tcp_open_ns = kSecondNs / 2, .tcp_closing_ns = 0, .udp_ns = 0};
  const auto connections = program->connections();
  for (uint16_t port = 1; port <= 300; ++port) {
    const bool is_old = port <= 100;
    // The last hundred are closed by their clients, but of the future: none is over.
    const auto state = port > 200 ? BL_CONNECTION_CLOSING : BL_CONNECTION_OPEN;
    const uint64_t at = is_old ? now - 2 * kSecondNs : now + 3600 * kSecondNs;
    ASSERT_TRUE(connections.set(flow(port), seen_at(at, state, port % 2)));
  }
  Ager ager(*program, short_limits);
  int steps = 1;
  for (auto done = ager.step(64); done && !*done && steps < 100; done = ager.step(64)) ++steps;
  EXPECT_GT(steps, 3) << "in steps";
  EXPECT_EQ(ager.aged(), 100U);
  EXPECT_EQ(ager.entries(), 200U);
  EXPECT_EQ(ager.entries_of(0), 100U);
  EXPECT_EQ(ager.open_of(0), 50U);
  EXPECT_FALSE(*connections.get(flow(100)));
  EXPECT_TRUE(*connections.get(flow(101)));
}

}  // namespace
}  // namespace ballast::lb
