// SPDX-License-Identifier: Apache-2.0
#include "lb/socket_count.h"

#include <gtest/gtest.h>

#include <vector>

#include "io/socket.h"

namespace ballast::lb {
namespace {

TEST(SocketCount, CountsConnectionsAndThoseNotAcceptedYet) {
  auto counter = SocketCounter::create();
  ASSERT_TRUE(counter) << counter.error().message;
  for (const char* host : {"127.0.0.1", "::1"}) {
    const auto address = io::resolve(host, 0);
    const auto listener = io::listen_tcp(*address);
    if (!listener) continue;  // no IPv6 here
    const io::Address at = io::local_address(listener->get());
    std::vector<io::Fd> clients;
    for (int i = 0; i < 5; ++i) clients.push_back(std::move(*io::connect_tcp(at)));
    auto count = counter->count(at.port());
    ASSERT_TRUE(count) << count.error().message;
    EXPECT_TRUE(count->listening);
    EXPECT_EQ(count->accept_queue, 5u) << host;
    // Handshakes are over, so the connections stand, accepted or not.
    EXPECT_EQ(count->established, 5u) << host;
    std::vector<io::Fd> accepted;
    for (int i = 0; i < 3; ++i) accepted.emplace_back(accept(listener->get(), nullptr, nullptr));
    count = counter->count(at.port());
    EXPECT_EQ(count->accept_queue, 2u) << host;
    EXPECT_EQ(count->established, 5u) << host;
  }
}

TEST(SocketCount, AnotherEndOfTheSamePortNumberIsNotCounted) {
  auto counter = SocketCounter::create();
  ASSERT_TRUE(counter);
  const auto mine = io::listen_tcp(*io::resolve("127.0.0.1", 0));
  const uint16_t port = io::local_address(mine->get()).port();
  const auto other = io::listen_tcp(*io::resolve("127.0.0.3", 0));
  const io::Address from = *io::resolve("127.0.0.2", port);
  const io::Fd outgoing(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(outgoing.get(), reinterpret_cast<const sockaddr*>(&from.storage), from.length), 0);
  const io::Address to = io::local_address(other->get());
  ASSERT_EQ(connect(outgoing.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.length), 0);
  const auto count = counter->count(port);
  ASSERT_TRUE(count);
  EXPECT_TRUE(count->listening);
  EXPECT_EQ(count->established, 0u);
}

TEST(SocketCount, APortThatNobodyHasIsEmpty) {
  auto counter = SocketCounter::create();
  ASSERT_TRUE(counter);
  uint16_t port = 0;
  {
    const auto listener = io::listen_tcp(*io::resolve("127.0.0.1", 0));
    port = io::local_address(listener->get()).port();
  }
  const auto count = counter->count(port);
  ASSERT_TRUE(count);
  EXPECT_FALSE(count->listening);
  EXPECT_EQ(count->established, 0u);
}

}  // namespace
}  // namespace ballast::lb
