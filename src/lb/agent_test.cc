// SPDX-License-Identifier: Apache-2.0
#include "lb/agent.h"

#include <gtest/gtest.h>

#include <future>
#include <set>

#include "lb/load_client.h"

namespace ballast::lb {
namespace {

constexpr const char* kSecret = "a secret for this test";
constexpr Nanos kTimeout = 2 * kSecond;
constexpr Nanos kNoAnswer = 200 * kMillisecond;

// An agent on a loop in a thread of its own.
class AgentTest : public testing::Test {
 protected:
  void start(AgentOptions options = {}) {
    options.listen = {"127.0.0.1", 0};
    options.check = {"127.0.0.1", 0};
    options.secrets = {kSecret};
    auto loop = io::Loop::create();
    ASSERT_TRUE(loop);
    loop_ = std::move(*loop);
    auto agent = Agent::create(*loop_, std::move(options));
    ASSERT_TRUE(agent) << agent.error().message;
    agent_ = std::move(*agent);
    address_ = {"127.0.0.1", agent_->address().port()};
    check_ = {"127.0.0.1", agent_->check_address().port()};
    thread_ = std::thread([this] { loop_->run(); });
  }
  void TearDown() override {
    if (!thread_.joinable()) return;
    loop_->post([this] { loop_->stop(); });
    thread_.join();
    agent_.reset();
  }
  uint64_t refused() {
    std::promise<uint64_t> count;
    loop_->post([&] { count.set_value(agent_->refused()); });
    return count.get_future().get();
  }

  std::unique_ptr<io::Loop> loop_;
  std::unique_ptr<Agent> agent_;
  std::thread thread_;
  model::Endpoint address_;
  model::Endpoint check_;
};

TEST_F(AgentTest, TellsItsLoadToWhoKnowsTheSecret) {
  start();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::set<uint64_t> incarnations;
  for (uint64_t number = 1; number <= 5; ++number) {
    const auto report = ask_agent(address_, kSecret, kTimeout);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->number, number);
    incarnations.insert(report->incarnation);
    ASSERT_TRUE(report->utilisation && report->cores);
    EXPECT_GE(*report->utilisation, 0);
    EXPECT_LE(*report->utilisation, 1);
    EXPECT_GE(*report->cores, 1);
    EXPECT_FALSE(report->connections || report->latency_us);  // not asked for
  }
  EXPECT_EQ(incarnations.size(), 1u);
}

TEST_F(AgentTest, SaysNothingToWhoDoesNot) {
  start();
  const auto report = ask_agent(address_, "another secret altogether", kNoAnswer);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(refused(), 1u);
  EXPECT_TRUE(ask_agent(address_, kSecret, kTimeout));
}

TEST_F(AgentTest, CountsTheConnectionsOfItsInstance) {
  const auto listener = io::listen_tcp(*io::resolve("127.0.0.1", 0));
  ASSERT_TRUE(listener);
  const io::Address at = io::local_address(listener->get());
  std::vector<io::Fd> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(std::move(*io::connect_tcp(at)));
  AgentOptions options;
  options.ports = {at.port()};
  start(options);
  const auto report = ask_agent(address_, kSecret, kTimeout);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->connections, 3u);
  EXPECT_EQ(report->accept_queue, 3u);
}

TEST_F(AgentTest, AnswersHaproxysAgentCheck) {
  start();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto check = ask_agent_check(check_, kTimeout);
  ASSERT_TRUE(check) << check.error().message;
  ASSERT_TRUE(check->weight);
  EXPECT_GE(*check->weight, 0.01);
  EXPECT_LE(*check->weight, 1);
}

TEST_F(AgentTest, AnAgentThatIsNotThereIsNamed) {
  uint16_t port = 0;
  {
    const auto socket = io::bind_udp(*io::resolve("127.0.0.1", 0));
    port = io::local_address(socket->get()).port();
  }
  const auto report = ask_agent({"127.0.0.1", port}, kSecret, kTimeout);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("127.0.0.1:" + std::to_string(port)), std::string::npos);
}

}  // namespace
}  // namespace ballast::lb
