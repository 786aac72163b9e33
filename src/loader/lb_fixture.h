// SPDX-License-Identifier: Apache-2.0
// A loaded packet path with VIPs of its own, for tests; skipped where programs may not be loaded.
#pragma once

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "balance/dispatch_table.h"
#include "base/random.h"
#include "loader/lb_program.h"
#include "loader/test_packet.h"
#include "loader/test_run.h"

namespace ballast::loader {

using Counts = std::map<std::string, uint64_t>;

inline bl_flow_key flow_of(const Bytes& packet) {
  bl_flow_key key{};
  key.family = packet[14] >> 4;
  const bool is_ipv4 = key.family == BL_FAMILY_IPV4;
  const size_t size = is_ipv4 ? 4 : 16;
  const uint8_t* addresses = &packet[is_ipv4 ? 26 : 22];
  std::memcpy(&key.source, addresses, size);
  std::memcpy(&key.destination, addresses + size, size);
  std::memcpy(&key.source_port_be, addresses + 2 * size, 2);
  std::memcpy(&key.destination_port_be, addresses + 2 * size + 2, 2);
  key.protocol = packet[is_ipv4 ? 23 : 20];
  return key;
}

// Another client: address and port at random.
inline Bytes from(Bytes packet, Random& random) {
  const bool is_ipv4 = packet[14] >> 4 == 4;
  const uint64_t bits = random.next();
  std::memcpy(&packet[is_ipv4 ? 26 : 30], &bits, 4);
  std::memcpy(&packet[is_ipv4 ? 34 : 54], reinterpret_cast<const uint8_t*>(&bits) + 4, 2);
  return packet;
}

// Whether this process may load programs, so that a refusal is the verifier's and a fault.
inline bool may_load(int refusal) {
  return geteuid() == 0 && refusal != EPERM && refusal != ENOSYS;
}

// VIPs: 192.0.2.1 TCP 80, UDP 53, 2001:db8::1 likewise: index 0, table 0; 192.0.2.2 all TCP ports:
// index 1, table 2. Instance i has MAC address 2:0:0:0:1:i.
class LbTest : public testing::Test {
 protected:
  static constexpr uint64_t kSeed = 0x5eed;

  void SetUp() override { load({kSeed, 1024, 1024, 64}); }

  void load(const LbSettings& settings) {
    auto loaded = LbProgram::load(settings);
    if (!loaded) {
      if (!may_load(loaded.error().sys_errno))
        GTEST_SKIP() << "may not load kernel programs: " << loaded.error().message;
      FAIL() << loaded.error().message;
    }
    program_ = std::make_unique<LbProgram>(std::move(*loaded));
    for (uint32_t i = 0; i < 4; ++i) set_instance(i, instance(BL_METHOD_L2));
    set_table(0, {1, 0, 0, 0});
    set_table(2, {0, 1, 0, 0});
    for (const char* words : {"192.0.2.1", "2001:db8::1"}) {
      set_vip(words, 80, IPPROTO_TCP, {0, 0});
      set_vip(words, 53, IPPROTO_UDP, {0, 0});
      set_vip(words, 0, 0, {0, 0});
    }
    set_vip("192.0.2.2", 0, IPPROTO_TCP, {1, 2});
    set_vip("192.0.2.2", 0, 0, {1, 0});
  }

  static uint8_t family_of(const char* words) {
    return std::string(words).find(':') == std::string::npos ? BL_FAMILY_IPV4 : BL_FAMILY_IPV6;
  }

  void set_vip(const char* words, uint16_t port, uint8_t protocol, bl_vip vip) {
    const bl_vip_key key{address(words), htons(port), protocol, family_of(words)};
    ASSERT_TRUE(program_->vips().set(key, vip));
  }

  void set_table(uint32_t slot, const std::vector<uint32_t>& weights) {
    bl_dispatch_table table{};
    if (std::ranges::any_of(weights, [](uint32_t weight) { return weight > 0; })) {
      const balance::DispatchTable dispatch(weights);
      table.total = dispatch.total();
      table.class_count = static_cast<uint32_t>(dispatch.classes().size());
      std::ranges::copy(dispatch.classes(), table.classes);
      std::ranges::copy(dispatch.members(), table.members);
    }
    ASSERT_TRUE(program_->dispatch_tables().set(slot, table));
  }

  static bl_instance instance(bl_method method, uint16_t mtu = 0,
                              bl_instance_state state = BL_INSTANCE_UP) {
    bl_instance made{};
    made.method = static_cast<uint8_t>(method);
    made.mtu = mtu;
    made.state = static_cast<uint8_t>(state);
    return made;
  }

  // The address of the instance decides the tunnel's family.
  void set_instance(uint32_t index, bl_instance made, const char* words = "") {
    const uint8_t mac[6] = {2, 0, 0, 0, 1, static_cast<uint8_t>(index)};
    const uint8_t own[6] = {2, 0, 0, 0, 0, 9};
    std::copy(mac, mac + 6, made.mac);
    std::copy(own, own + 6, made.source_mac);
    if (made.state == BL_INSTANCE_ABSENT) made.state = BL_INSTANCE_UP;
    if (*words) {
      made.family = family_of(words);
      made.address = address(words);
      made.outer_source = address(made.family == BL_FAMILY_IPV4 ? "203.0.113.9" : "2001:db8:f::9");
    }
    ASSERT_TRUE(program_->instances().set(index, made));
  }

  TestRun run(const Bytes& packet) {
    const auto done = test_run(program_->fd(), packet);
    EXPECT_TRUE(done) << done.error().message;
    return done ? *done : TestRun{};
  }

  // The instance a packet went to, or -1.
  int instance_of(const Bytes& packet) {
    const TestRun done = run(packet);
    return done.action == XDP_TX && done.packet[4] == 1 ? done.packet[5] : -1;
  }

  uint64_t count(uint32_t counter) { return *program_->counters().sum(counter); }

  Counts counts() {
    Counts all;
    for (uint32_t i = 0; i < BL_COUNTERS; ++i) {
      if (const uint64_t value = count(i)) all[counter_names()[i].name] = value;
    }
    return all;
  }

  std::unique_ptr<LbProgram> program_;
};

}  // namespace ballast::loader
