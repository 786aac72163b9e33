// SPDX-License-Identifier: Apache-2.0
#include "lb/poller.h"

#include <gtest/gtest.h>

#include <string>

#include "lb/agent.h"

namespace ballast::lb {
namespace {

constexpr const char* kSecret = "a secret for this test";
const proto::LoadSecret& key() {
  static const proto::LoadSecret secret(kSecret);
  return secret;
}

// Agents and poller on one loop, which runs for a while.
class PollerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loop = io::Loop::create();
    ASSERT_TRUE(loop);
    loop_ = std::move(*loop);
  }
  io::Address agent(const std::string& secret = kSecret) {
    AgentOptions options;
    options.listen = {"127.0.0.1", 0};
    options.secret = secret;
    agents_.push_back(std::move(*Agent::create(*loop_, std::move(options))));
    return agents_.back()->address();
  }
  void poll(const std::vector<io::Address>& agents, Nanos interval = 20 * kMillisecond) {
    poller_ =
        std::move(*Poller::create(*loop_, agents, {interval, kSecret}, [this] { ++rounds_; }));
  }
  void run(Nanos time) {
    loop_->after(time, [this] { loop_->stop(); });
    loop_->run();
  }

  std::unique_ptr<io::Loop> loop_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::unique_ptr<Poller> poller_;
  int rounds_ = 0;
};

TEST_F(PollerTest, HearsEveryAgentEveryInterval) {
  poll({agent(), agent(), agent()});
  run(500 * kMillisecond);
  EXPECT_GE(rounds_, 15);
  for (const Polled& polled : poller_->agents()) {
    ASSERT_TRUE(polled.report);
    EXPECT_EQ(polled.report->number, polled.answers);
    EXPECT_GE(polled.answers + 1, polled.polls);
    EXPECT_GE(polled.polls, 15u);
    EXPECT_LE(polled.polls, 27u);
    EXPECT_EQ(polled.missed, 0u);
  }
  EXPECT_EQ(poller_->strays(), 0u);
}

TEST_F(PollerTest, AnAgentThatIsGoneIsMissedAndHoldsUpNobody) {
  const io::Address gone = agent();
  poll({gone, agent()});
  run(200 * kMillisecond);
  agents_.erase(agents_.begin());
  run(300 * kMillisecond);
  const Polled& lost = poller_->agents()[0];
  EXPECT_TRUE(lost.report);  // the last that was heard
  EXPECT_GE(lost.missed, 8u);
  EXPECT_EQ(poller_->agents()[1].missed, 0u);
  EXPECT_GE(poller_->agents()[1].answers, 15u);
}

TEST_F(PollerTest, WithAnotherSecretNothingIsHeard) {
  poll({agent("another secret altogether"), agent()});
  run(200 * kMillisecond);
  EXPECT_FALSE(poller_->agents()[0].report);
  EXPECT_GE(poller_->agents()[0].missed, 4u);
  EXPECT_TRUE(poller_->agents()[1].report);
}

TEST_F(PollerTest, TurnsAreSpreadOverTheInterval) {
  std::vector<io::Address> agents;
  const io::Address one = agent();
  for (int i = 0; i < 200; ++i) agents.push_back(one);
  poll(agents, 100 * kMillisecond);
  run(50 * kMillisecond);
  uint64_t polls = 0;
  for (const Polled& polled : poller_->agents()) polls += polled.polls;
  EXPECT_GT(polls, 60u);
  EXPECT_LT(polls, 140u);
}

// Answers each question with what the test makes of it.
class Liar final : public io::Loop::Handler {
 public:
  using Answer = std::function<std::string(uint64_t nonce)>;
  Liar(io::Loop& loop, Answer answer)
      : fd_(std::move(*io::bind_udp(*io::resolve("127.0.0.1", 0)))), answer_(std::move(answer)) {
    EXPECT_TRUE(loop.add(fd_.get(), this));
  }
  io::Address address() const { return io::local_address(fd_.get()); }
  void on_ready(uint32_t /*epoll_events*/) override {
    char datagram[64];
    io::Address from;
    from.length = sizeof from.storage;
    ssize_t got = 0;
    while ((got = recvfrom(fd_.get(), datagram, sizeof datagram, 0,
                           reinterpret_cast<sockaddr*>(&from.storage), &from.length)) > 0) {
      const auto nonce = proto::decode_load_request({datagram, static_cast<size_t>(got)}, key());
      const std::string text = answer_(*nonce);
      sendto(fd_.get(), text.data(), text.size(), 0,
             reinterpret_cast<const sockaddr*>(&from.storage), from.length);
    }
  }

 private:
  io::Fd fd_;
  Answer answer_;
};

TEST_F(PollerTest, ForgedAndOldAnswersChangeNothing) {
  const proto::LoadReport report{.incarnation = 1, .number = 1, .utilisation = 0.5};
  std::string first;
  Liar repeats(*loop_, [&](uint64_t nonce) {
    if (first.empty()) first = proto::encode_load_report(report, nonce, key());
    return first;
  });
  Liar forges(*loop_, [&](uint64_t nonce) {
    return proto::encode_load_report(report, nonce, proto::LoadSecret("not the secret at all"));
  });
  Liar babbles(*loop_, [](uint64_t) { return std::string("100%\n"); });
  poll({repeats.address(), forges.address(), babbles.address()});
  run(300 * kMillisecond);
  const auto& agents = poller_->agents();
  EXPECT_EQ(agents[0].answers, 1u);
  EXPECT_GE(agents[0].missed, 8u);
  EXPECT_EQ(agents[1].answers, 0u);
  EXPECT_GE(agents[1].refused, 8u);
  EXPECT_EQ(agents[2].answers, 0u);
  EXPECT_GE(poller_->strays(), 16u);
}

}  // namespace
}  // namespace ballast::lb
