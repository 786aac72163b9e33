// SPDX-License-Identifier: Apache-2.0
// Many flows through the packet path: the choice against src/balance, and which connections stay.
#include <gtest/gtest.h>

#include "base/random.h"
#include "loader/lb_fixture.h"
#include "wire/flow_hash.h"

namespace ballast::loader {
namespace {

TEST_F(LbTest, ChoosesAsTheBalanceFolderDoes) {
  constexpr int kFlows = 1'000'000;
  Random random(kSeed);
  const std::vector<Bytes> kinds{packet4(tcp(kSyn)), packet6(tcp(kSyn)),
                                 packet4(udp(), {.protocol = IPPROTO_UDP})};
  std::vector<uint32_t> weights(200);
  for (uint32_t i = 0; i < weights.size(); ++i) set_instance(i, instance(BL_METHOD_L2));
  balance::DispatchTable dispatch(std::vector<uint32_t>{1});
  for (int i = 0; i < kFlows; ++i) {
    if (i % 10'000 == 0) {
      for (uint32_t& weight : weights) weight = static_cast<uint32_t>(random.below(17));
      weights[0] = 16;
      dispatch = balance::DispatchTable(weights);
      set_table(0, weights);
    }
    const Bytes packet = from(kinds[static_cast<size_t>(i) % kinds.size()], random);
    const bl_flow_key flow = flow_of(packet);
    ASSERT_EQ(instance_of(packet), dispatch.choose(bl_hash_flow(&flow, kSeed))) << "flow " << i;
  }
}

TEST_F(LbTest, AKnownConnectionStaysWhenTablesChange) {
  EXPECT_EQ(instance_of(packet4(tcp(kSyn))), 0);
  set_table(0, {0, 0, 1, 0});
  EXPECT_EQ(instance_of(packet4(tcp(kSyn))), 0) << "a SYN sent again";
  EXPECT_EQ(instance_of(packet4(tcp(kAck))), 0);
  set_vip("192.0.2.1", 80, IPPROTO_TCP, {0, 2});
  EXPECT_EQ(instance_of(packet4(tcp(kAck))), 0);
  EXPECT_EQ(instance_of(packet4(tcp(kAck | kFin))), 0);
  EXPECT_EQ(instance_of(packet4(tcp(kAck))), 0) << "the client's half alone is closed";
  EXPECT_EQ(instance_of(packet4(tcp(kSyn, 41'000))), 1);
  const Counts expected{{"chosen", 2}, {"newcomer", 2}, {"opened", 1}, {"known", 3}};
  EXPECT_EQ(counts(), expected);
}

TEST_F(LbTest, ASynAfterTheEndBeginsANewFlow) {
  for (const int end : {kFin | kAck, static_cast<int>(kRst)}) {
    const auto port = static_cast<uint16_t>(40'000 + end);
    set_table(0, {1, 0, 0, 0});
    EXPECT_EQ(instance_of(packet4(tcp(kSyn, port))), 0);
    EXPECT_EQ(instance_of(packet4(tcp(kAck, port))), 0);
    EXPECT_EQ(instance_of(packet4(tcp(end, port))), 0);
    set_table(0, {0, 0, 1, 0});
    EXPECT_EQ(instance_of(packet4(tcp(kSyn, port))), 2);
  }
  EXPECT_EQ(count(BL_EVENT_port_reused), 2U);
}

TEST_F(LbTest, StatesFollowTheClientsFlags) {
  const bl_flow_key key = flow_of(packet4(tcp(kSyn)));
  const auto state = [&] {
    const auto found = program_->connections().get(key);
    return found && *found ? int{(*found)->state} : -1;
  };
  run(packet4(tcp(kSyn)));
  EXPECT_EQ(state(), -1);
  run(packet4(tcp(kAck)));
  EXPECT_EQ(state(), BL_CONNECTION_OPEN);
  EXPECT_GT((**program_->connections().get(key)).last_seen_ns, 0U);
  run(packet4(tcp(kRst)));
  EXPECT_EQ(state(), BL_CONNECTION_RESET);
  run(packet4(tcp(kAck)));
  EXPECT_EQ(state(), BL_CONNECTION_OPEN) << "the RST was forged";
  run(packet4(tcp(kAck | kFin)));
  EXPECT_EQ(state(), BL_CONNECTION_CLOSING);
}

TEST_F(LbTest, AFloodOfSynsLeavesEstablishedConnections) {
  for (uint16_t port = 1; port <= 1000; ++port) {
    ASSERT_EQ(instance_of(packet4(tcp(kSyn, port))), 0);
    ASSERT_EQ(instance_of(packet4(tcp(kAck, port))), 0);
  }
  set_table(0, {0, 0, 1, 0});
  Random random(kSeed);
  for (int i = 0; i < 100'000; ++i) run(from(packet4(tcp(kSyn)), random));
  for (uint16_t port = 1; port <= 1000; ++port) ASSERT_EQ(instance_of(packet4(tcp(kAck, port))), 0);
  EXPECT_EQ(count(BL_EVENT_table_full), 0U);
}

TEST_F(LbTest, NewcomersOfASetTakeItsPlacesInTurn) {
  load({.hash_seed = kSeed, .connections = 1024, .newcomer_sets = 1});
  for (uint16_t port = 1; port <= BL_NEWCOMER_PLACES; ++port)
    ASSERT_EQ(instance_of(packet4(tcp(kSyn, port))), 0);
  set_table(0, {0, 0, 1, 0});
  for (uint16_t port = 1; port <= BL_NEWCOMER_PLACES; ++port)
    ASSERT_EQ(instance_of(packet4(tcp(kSyn, port))), 0) << "a retransmitted SYN stays";
  EXPECT_EQ(instance_of(packet4(tcp(kSyn, 100))), 2);
  EXPECT_EQ(instance_of(packet4(tcp(kSyn, 1))), 2) << "the first place was taken";
  EXPECT_EQ(instance_of(packet4(tcp(kSyn, 3))), 0);
  EXPECT_EQ(instance_of(packet4(tcp(kAck, 3))), 0);
  EXPECT_EQ(instance_of(packet4(tcp(kSyn, 4))), 0) << "a place that is given back is nobody else's";
  EXPECT_EQ(**program_->newcomer(flow_of(packet4(tcp(kSyn, 4)))), 0U);
  EXPECT_FALSE(*program_->newcomer(flow_of(packet4(tcp(kSyn, 3))))) << "it is a connection";
}

// A set that counts too few would give a client that uses its port again two instances.
TEST_F(LbTest, SetsCountTheirConnections) {
  load({.hash_seed = kSeed, .connections = 2, .newcomer_sets = 1});
  const auto counted = [&] {
    const MapView<uint32_t, bl_newcomer_set> sets(program_->newcomers_fd(), "newcomers");
    return (**sets.get(0)).connections;
  };
  for (uint16_t port = 1; port <= 3; ++port) {
    run(packet4(tcp(kSyn, port)));
    EXPECT_EQ(counted(), std::min(port - 1, 2)) << "a newcomer is no connection";
    run(packet4(tcp(kAck, port)));
    EXPECT_EQ(counted(), std::min<int>(port, 2)) << "the third finds the table full";
  }
  set_table(0, {0, 0, 1, 0});
  EXPECT_EQ(instance_of(packet4(tcp(kSyn, 1))), 0) << "a late SYN of what is open";
  run(packet4(tcp(kAck | kFin, 1)));
  EXPECT_EQ(instance_of(packet4(tcp(kSyn, 1))), 2) << "the port is used again";
  EXPECT_EQ(counted(), 1U);
  EXPECT_TRUE(*program_->remove_connection(flow_of(packet4(tcp(kSyn, 2)))));
  EXPECT_FALSE(*program_->remove_connection(flow_of(packet4(tcp(kSyn, 2)))));
  EXPECT_EQ(counted(), 0U);
}

TEST_F(LbTest, TheLastInstanceIsOneLikeAnyOther) {
  set_instance(BL_MOST_INSTANCES - 1, instance(BL_METHOD_L2));
  std::vector<uint32_t> weights(BL_MOST_INSTANCES, 0);
  weights.back() = 1;
  set_table(0, weights);
  for (const uint8_t flags : {kSyn, kSyn, kAck, kAck})
    ASSERT_EQ(instance_of(packet4(tcp(flags))), 255) << "its MAC address ends in 0xff";
  EXPECT_EQ(program_->instance_counters().sum(BL_MOST_INSTANCES - 1)->packets, 4U);
}

TEST_F(LbTest, AFullTableIsCountedAndServes) {
  for (uint16_t port = 1; port <= 1100; ++port) {
    ASSERT_EQ(instance_of(packet4(tcp(kSyn, port))), 0);
    ASSERT_EQ(instance_of(packet4(tcp(kAck, port))), 0);
    ASSERT_EQ(instance_of(packet4(tcp(kAck, port))), 0);
  }
  EXPECT_EQ(count(BL_EVENT_opened), 1024U);
  EXPECT_EQ(count(BL_EVENT_table_full), 2U * (1100 - 1024));
}

TEST_F(LbTest, ConnectionsOfAnInstanceThatIsDownMove) {
  EXPECT_EQ(instance_of(packet4(tcp(kSyn))), 0);
  EXPECT_EQ(instance_of(packet4(tcp(kAck))), 0);
  set_table(0, {0, 0, 1, 0});
  set_instance(0, instance(BL_METHOD_L2, 0, BL_INSTANCE_DOWN));
  EXPECT_EQ(instance_of(packet4(tcp(kAck))), 2);
  EXPECT_EQ(instance_of(packet4(tcp(kAck))), 2);
  EXPECT_EQ(count(BL_EVENT_moved_from_down), 1U);
}

TEST_F(LbTest, TrafficIsCountedByInstance) {
  run(packet4(tcp(kSyn)));
  run(packet4(tcp(kAck)));
  const bl_traffic traffic = *program_->instance_counters().sum(0);
  EXPECT_EQ(traffic.packets, 2U);
  EXPECT_EQ(traffic.bytes, 80U);
  EXPECT_EQ(traffic.connections, 1U);
  EXPECT_EQ(program_->instance_counters().sum(1)->packets, 0U);
}

TEST(Decap, OpensWhatABalancerSentAndNothingElse) {
  const auto program = DecapProgram::load();
  if (!program && !may_load(program.error().sys_errno))
    GTEST_SKIP() << "may not load kernel programs: " << program.error().message;
  ASSERT_TRUE(program) << program.error().message;
  const Bytes inner4 = ipv4({}, tcp(kSyn));
  const Bytes inner6 = ipv6(IPPROTO_TCP, tcp(kSyn));
  const bl_balancer_key balancer{address("203.0.113.9"), BL_FAMILY_IPV4, {}};
  ASSERT_TRUE(program->balancers().set(balancer, 1));
  const auto wrapped = [](const Bytes& inner, uint8_t protocol, const char* source) {
    return packet4(inner, {.source = source, .destination = "10.0.0.1", .protocol = protocol});
  };
  Bytes gue = udp(49'152, BL_GUE_PORT, inner6.size());
  std::copy(inner6.begin(), inner6.end(), gue.begin() + 8);
  const std::vector<std::pair<Bytes, Bytes>> opened{
      {wrapped(inner4, IPPROTO_IPIP, "203.0.113.9"), ethernet(ETH_P_IP) + inner4},
      {wrapped(inner6, IPPROTO_IPV6, "203.0.113.9"), ethernet(ETH_P_IPV6) + inner6},
      {wrapped(gue, IPPROTO_UDP, "203.0.113.9"), ethernet(ETH_P_IPV6) + inner6}};
  for (const auto& [in, out] : opened) {
    const auto done = test_run(program->fd(), in);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->action, XDP_PASS);
    EXPECT_EQ(done->packet, out);
  }
  const Bytes stranger = wrapped(inner4, IPPROTO_IPIP, "203.0.113.10");
  EXPECT_EQ(test_run(program->fd(), stranger)->packet, stranger);
  EXPECT_EQ(test_run(program->fd(), wrapped({}, IPPROTO_IPIP, "203.0.113.9"))->action, XDP_DROP);
  EXPECT_EQ(*program->counters().sum(BL_DECAP_opened), 3U);
  EXPECT_EQ(*program->counters().sum(BL_DECAP_stranger), 1U);
  EXPECT_EQ(*program->counters().sum(BL_DECAP_malformed), 1U);
}

}  // namespace
}  // namespace ballast::loader
