// SPDX-License-Identifier: Apache-2.0
#include "lb/health.h"

#include <gtest/gtest.h>

#include <vector>

#include "io/listener.h"
#include "lb/test_nginx.h"

namespace ballast::lb {
namespace {

using model::HealthCheck;

class HealthTest : public testing::Test {
 protected:
  void SetUp() override {
    loop_ = std::move(*io::Loop::create());
    checks_ = HealthChecks::create(*loop_, [this](uint32_t id, const HealthState& state) {
      changes_.emplace_back(id, state.health);
      if (on_change_) on_change_();
    });
  }
  void run(Nanos time) {
    const auto timer = loop_->after(time, [this] { loop_->stop(); });
    loop_->run();
    loop_->cancel(timer);
  }
  // Until `id` is so; how long it took.
  Nanos until(uint32_t id, Health health, Nanos most = 10 * kSecond) {
    const Nanos begun = now_ns();
    on_change_ = [&] {
      if (checks_->state(id).health == health) loop_->stop();
    };
    if (checks_->state(id).health != health) run(most);
    on_change_ = {};
    EXPECT_EQ(checks_->state(id).health, health) << checks_->state(id).last_cause;
    return now_ns() - begun;
  }
  uint32_t add(const io::Address& address, HealthCheck kind, const char* path = "/") {
    HealthTarget target;
    target.kind = kind;
    target.address = address;
    target.path = path;
    return *checks_->add(target);
  }
  // Accepts, and never says a word.
  io::Address mute() {
    listeners_.push_back(
        std::move(*io::Listener::create(*loop_, *io::resolve("127.0.0.1", 0),
                                        [this](io::Fd fd) { held_.push_back(std::move(fd)); })));
    return listeners_.back()->address();
  }
  // Drops every SYN, as one does that is cut off: its queue is full.
  io::Address black_hole() {
    io::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto any = io::resolve("127.0.0.1", 0);
    bind(fd.get(), reinterpret_cast<const sockaddr*>(&any->storage), any->length);
    listen(fd.get(), 0);
    const io::Address address = io::local_address(fd.get());
    held_.push_back(std::move(fd));
    for (int i = 0; i < 3; ++i) held_.push_back(std::move(*io::connect_tcp(address)));
    return address;
  }

  std::unique_ptr<io::Loop> loop_;
  std::vector<std::unique_ptr<io::Listener>> listeners_;
  std::vector<io::Fd> held_;
  std::unique_ptr<HealthChecks> checks_;
  std::vector<std::pair<uint32_t, Health>> changes_;
  std::function<void()> on_change_;
};

TEST_F(HealthTest, AnInstanceIsUpAfterItsFirstGoodCheckAndNotBefore) {
  const uint32_t good = add(mute(), HealthCheck::kTcp);
  EXPECT_EQ(checks_->state(good).health, Health::kUnknown);
  EXPECT_FALSE(checks_->state(good).is_up());
  EXPECT_LT(until(good, Health::kUp), 300 * kMillisecond);
  EXPECT_EQ(checks_->state(good).checks, 1u);
}

TEST_F(HealthTest, ARealServerThatDiesIsNoticedWithinTwoSecondsAndComesBack) {
  if (!TestNginx::is_installed()) GTEST_SKIP() << "no nginx";
  TestNginx nginx(
      "location /good { return 200 x; } location /moved { return 302 /good; }"
      "location /bad { return 503; }");
  const uint32_t tcp = add(nginx.address(), HealthCheck::kTcp);
  const uint32_t good = add(nginx.address(), HealthCheck::kHttp, "/good");
  const uint32_t moved = add(nginx.address(), HealthCheck::kHttp, "/moved");
  const uint32_t bad = add(nginx.address(), HealthCheck::kHttp, "/bad");
  for (const uint32_t id : {tcp, good, moved}) until(id, Health::kUp);
  until(bad, Health::kDown);
  EXPECT_EQ(checks_->state(bad).last_cause, "answered 503");
  run(1200 * kMillisecond);
  nginx.end();
  const Nanos killed = now_ns();
  for (const uint32_t id : {tcp, good, moved}) {
    until(id, Health::kDown);
    EXPECT_LT(checks_->state(id).since - killed, 2 * kSecond);
    EXPECT_NE(checks_->state(id).last_cause.find("refused"), std::string::npos)
        << checks_->state(id).last_cause;
  }
  nginx.start();
  for (const uint32_t id : {tcp, good, moved}) until(id, Health::kUp);
  nginx.send(SIGSTOP);  // its kernel still accepts
  const Nanos stopped = now_ns();
  until(good, Health::kDown);
  EXPECT_LT(now_ns() - stopped, 2 * kSecond);
  EXPECT_EQ(checks_->state(good).last_cause, "no answer within 500 ms");
  EXPECT_TRUE(checks_->state(tcp).is_up());
  nginx.send(SIGCONT);
  until(good, Health::kUp);
}

TEST_F(HealthTest, ABlackHoleIsNoticedWithinTwoSeconds) {
  HealthTarget target;
  target.address = black_hole();
  const uint32_t id = *checks_->add(target, true);
  EXPECT_TRUE(checks_->state(id).is_up());
  EXPECT_LT(until(id, Health::kDown), 2 * kSecond);
  EXPECT_EQ(checks_->state(id).last_cause, "no connection within 500 ms");
  EXPECT_EQ(checks_->state(id).bad, 2u);  // not one alone
}

TEST_F(HealthTest, NobodyWaitsForThoseThatDoNotAnswer) {
  const io::Address silent = mute();
  for (int i = 0; i < 50; ++i) {
    HealthTarget target{.kind = HealthCheck::kHttp, .address = silent};
    target.path = "/" + std::to_string(i);
    target.timeout = 5 * kSecond;
    ASSERT_TRUE(checks_->add(target));
  }
  HealthTarget target;
  target.address = mute();
  target.interval = 50 * kMillisecond;
  const uint32_t quick = *checks_->add(target);
  for (int i = 0; i < 100 && checks_->state(quick).checks < 15; ++i) run(40 * kMillisecond);
  EXPECT_GE(checks_->state(quick).checks, 15u);
}

TEST_F(HealthTest, EqualTargetsAreOneAndMayGoWhileTheyAreTold) {
  const io::Address address = mute();
  const uint32_t id = add(address, HealthCheck::kTcp);
  EXPECT_EQ(add(address, HealthCheck::kTcp), id);
  EXPECT_NE(add(address, HealthCheck::kHttp), id);
  EXPECT_EQ(checks_->size(), 2u);
  checks_->remove(id);
  on_change_ = [&] {
    on_change_ = {};
    checks_->remove(id);
  };
  run(200 * kMillisecond);
  EXPECT_EQ(checks_->size(), 1u);
  EXPECT_EQ(changes_.size(), 1u);
}

TEST_F(HealthTest, WhatCannotBeCheckedIsRefused) {
  HealthTarget target;
  EXPECT_FALSE(checks_->add(target));  // no address
  target.address = *io::resolve("127.0.0.1", 1);
  target.kind = HealthCheck::kHttp;
  for (const char* path : {"", "x", "/a b", "/a\r\nX: y"}) {
    target.path = path;
    EXPECT_FALSE(checks_->add(target)) << path;
  }
  target.path = "/";
  target.fall = 0;
  EXPECT_FALSE(checks_->add(target));
}

}  // namespace
}  // namespace ballast::lb
