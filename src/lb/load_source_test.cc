// SPDX-License-Identifier: Apache-2.0
#include "lb/load_source.h"

#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "io/listener.h"
#include "lb/agent.h"
#include "lb/test_nginx.h"
#include "telemetry/admin.h"

namespace ballast::lb {
namespace {

using model::LoadSource;

constexpr const char* kSecret = "a secret for this test";
constexpr Nanos kInterval = 20 * kMillisecond;
const proto::LoadSecret& key() {
  static const proto::LoadSecret secret(kSecret);
  return secret;
}

class LoadSourcesTest : public testing::Test {
 protected:
  void SetUp() override {
    loop_ = std::move(*io::Loop::create());
    sources_ = std::move(*LoadSources::create(*loop_, {.interval = kInterval, .secret = kSecret}));
  }
  io::Address agent(const std::string& secret = kSecret) {
    AgentOptions options;
    options.listen = {"127.0.0.1", 0};
    options.check = {"127.0.0.1", 0};
    options.secrets = {"another that it knows", secret};
    agents_.push_back(std::move(*Agent::create(*loop_, std::move(options))));
    return agents_.back()->address();
  }
  // Says `pieces` to everyone who connects, one write each, and hangs up if wanted.
  io::Address speaker(std::vector<std::string> pieces, bool hangs_up = true) {
    listeners_.push_back(std::move(*io::Listener::create(
        *loop_, *io::resolve("127.0.0.1", 0),
        [this, pieces = std::move(pieces), hangs_up](io::Fd fd) {
          const int off = 0;
          setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &off, sizeof off);
          for (const std::string& piece : pieces)
            EXPECT_GT(::send(fd.get(), piece.data(), piece.size(), MSG_NOSIGNAL), 0);
          if (!hangs_up) held_.push_back(std::move(fd));
        })));
    return listeners_.back()->address();
  }
  uint32_t add(const io::Address& address, LoadSource source = LoadSource::kAgent,
               const char* path = "/", const char* metric = "", double full = 1) {
    const auto id = sources_->add({source, address, path, metric, full});
    EXPECT_TRUE(id) << id.error().message;
    return *id;
  }
  const LoadState& state(uint32_t id) { return sources_->state(id); }
  void run(Nanos time) {
    loop_->after(time, [this] { loop_->stop(); });
    loop_->run();
  }

  // However slow the machine is just now.
  void until(const std::function<bool()>& is_so) {
    for (int i = 0; i < 4000 && !is_so(); ++i) run(5 * kMillisecond);
    EXPECT_TRUE(is_so());
  }
  void until_answers(uint32_t id, uint64_t count) {
    until([&] { return state(id).answers >= count; });
  }

  std::unique_ptr<io::Loop> loop_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::vector<std::unique_ptr<io::Listener>> listeners_;
  std::vector<io::Fd> held_;
  std::unique_ptr<LoadSources> sources_;
};

TEST_F(LoadSourcesTest, HearsEveryAgentEveryInterval) {
  const std::vector<uint32_t> ids{add(agent()), add(agent()), add(agent())};
  const Nanos begun = now_ns();
  for (const uint32_t id : ids) until_answers(id, 15);
  const auto most = static_cast<uint64_t>((now_ns() - begun) / kInterval + 2);
  for (const uint32_t id : ids) {
    EXPECT_TRUE(state(id).cores);
    EXPECT_GE(state(id).number, state(id).answers);
    EXPECT_LE(state(id).polls, most);
  }
}

TEST_F(LoadSourcesTest, AnAgentThatIsGoneIsMissedAndHoldsUpNobody) {
  const uint32_t gone = add(agent());
  const uint32_t there = add(agent());
  until_answers(gone, 3);
  agents_.erase(agents_.begin());
  const uint64_t before = state(there).answers;
  until([&] { return state(gone).missed >= 8; });
  EXPECT_TRUE(state(gone).cores);  // the last that was heard
  EXPECT_EQ(state(gone).error, "no answer within 20 ms");
  EXPECT_GE(state(there).answers, before + 3);
}

TEST_F(LoadSourcesTest, TargetsComeAndGoWhileOthersArePolled) {
  const io::Address address = agent();
  const uint32_t first = add(address);
  EXPECT_EQ(add(address), first);
  EXPECT_EQ(sources_->size(), 1u);
  until_answers(first, 3);
  const uint32_t second = add(agent());
  sources_->remove(first);
  until_answers(first, 6);  // one user is left
  sources_->remove(first);
  EXPECT_EQ(sources_->size(), 1u);
  until_answers(second, 6);
  EXPECT_NE(add(address), first);
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

TEST_F(LoadSourcesTest, ForgedOldAndImpossibleAnswersOfAgentsChangeNothing) {
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
  int answers = 0;
  Liar lies_later(*loop_, [&](uint64_t nonce) {
    if (answers++ == 0) return proto::encode_load_report(report, nonce, key());
    if (answers % 2 == 0)  // an instance without a processor
      return proto::encode_load_report({.utilisation = 0.9, .cores = 0}, nonce, key());
    // 150 %, in millionths, under the true secret
    std::string lie = proto::encode_load_report(report, nonce, key());
    lie.resize(lie.size() - 16);
    lie.replace(lie.find(std::string("\x00\x07\xa1\x20", 4)), 4,
                std::string("\x00\x16\xe3\x60", 4));
    return lie + key().mac(lie);
  });
  const uint32_t ids[] = {add(repeats.address()), add(forges.address()), add(babbles.address()),
                          add(lies_later.address())};
  until([&] {
    return state(ids[0]).missed >= 8 && state(ids[1]).refused >= 8 && state(ids[3]).refused >= 6 &&
           sources_->strays() >= 16;
  });
  EXPECT_EQ(state(ids[0]).answers, 1u);
  EXPECT_EQ(state(ids[1]).answers, 0u);
  EXPECT_FALSE(state(ids[1]).utilisation);
  EXPECT_EQ(state(ids[2]).answers, 0u);
  EXPECT_EQ(state(ids[3]).utilisation, 0.5);
}

TEST_F(LoadSourcesTest, HearsTheAgentsOwnAgentCheck) {
  agent();
  const uint32_t id = add(agents_.back()->check_address(), LoadSource::kAgentCheck);
  until_answers(id, 15);
  ASSERT_TRUE(state(id).factor) << state(id).error;
  EXPECT_GT(*state(id).factor, 0);
  EXPECT_LE(*state(id).factor, 1);
  EXPECT_FALSE(state(id).drains);
}

// HAProxy's issue 1839: a line in two writes took 203 ms.
TEST_F(LoadSourcesTest, ALineInPiecesHoldsTheInterval) {
  const uint32_t pieces =
      add(speaker({"7", "5", "%", " up", "\n"}, false), LoadSource::kAgentCheck);
  const uint32_t no_end = add(speaker({"75%"}), LoadSource::kAgentCheck);
  const uint32_t endless = add(speaker({std::string(20'000, '7')}, false), LoadSource::kAgentCheck);
  const uint32_t wrong = add(speaker({"fast\n"}), LoadSource::kAgentCheck);
  const uint32_t negative = add(speaker({"-5%\n"}), LoadSource::kAgentCheck);
  const uint32_t silent = add(speaker({}, false), LoadSource::kAgentCheck);
  until([&] { return state(pieces).answers >= 20 && state(silent).missed >= 15; });
  EXPECT_EQ(state(pieces).factor, 0.75);
  // One that waited 40 ms for an acknowledgement would have missed every other poll.
  EXPECT_GE(state(pieces).answers * 4, state(pieces).polls * 3);
  for (const uint32_t id : {no_end, endless, wrong, negative}) {
    until([&] { return state(id).refused >= 10; });
    EXPECT_EQ(state(id).answers, 0u);
    EXPECT_FALSE(state(id).factor);
  }
  EXPECT_EQ(state(silent).refused, 0u);
  const uint32_t only_up = add(speaker({"up\n"}), LoadSource::kAgentCheck);
  until_answers(only_up, 1);
  EXPECT_EQ(state(only_up).factor, 1.0);  // as HAProxy takes it
}

TEST_F(LoadSourcesTest, AnAgentChecksWordsStayUntilTakenBack) {
  int polls = 0;
  const char* lines[] = {"50% up\n", "drain\n", "20%\n", "down\n", "ready\n", "up\n"};
  const bool drains[] = {false, true, true, true, true, false};
  auto listener =
      std::move(*io::Listener::create(*loop_, *io::resolve("127.0.0.1", 0), [&](io::Fd fd) {
        const char* line = lines[std::min(polls++, 5)];
        EXPECT_GT(::send(fd.get(), line, strlen(line), MSG_NOSIGNAL), 0);
      }));
  const uint32_t id = add(listener->address(), LoadSource::kAgentCheck);
  for (uint64_t answers = 1; answers <= 6; ++answers) {
    for (int i = 0; i < 1000 && state(id).answers < answers; ++i) run(kMillisecond);
    ASSERT_EQ(state(id).answers, answers);
    EXPECT_EQ(state(id).drains, drains[answers - 1]) << answers;
  }
  EXPECT_EQ(state(id).factor, 0.2);
}

TEST_F(LoadSourcesTest, HearsJsonAndMetricsFromARealServer) {
  if (!TestNginx::is_installed()) GTEST_SKIP() << "no nginx";
  TestNginx nginx(
      "location /json { return 200 '{\"cpu\":{\"cores\":[{\"load\":3},{\"load\":-1}]}}'; }"
      "location /prom { return 200 'load{core=\"0\"} 3\nload{core=\"1\"} NaN\nload_most +Inf\n'; }"
      "location /bad { return 500 '{\"n\":1}'; }");
  const io::Address& address = nginx.address();
  const auto json = [&](const char* path, const char* metric, double full = 4) {
    return add(address, LoadSource::kHttpJson, path, metric, full);
  };
  const auto metric = [&](const char* selector, double full = 4) {
    return add(address, LoadSource::kPrometheus, "/prom", selector, full);
  };
  const uint32_t good[] = {json("/json", "cpu.cores.0.load"), metric("load{core=\"0\"}")};
  const uint32_t full[] = {json("/json", "cpu.cores.0.load", 2), metric("load{core=\"0\"}", 2)};
  const uint32_t bad[] = {json("/json", "cpu.cores.1.load"),
                          json("/json", "cpu.cores.2.load"),
                          json("/prom", "load"),
                          json("/bad", "n"),
                          metric("load"),
                          metric("load{core=\"1\"}"),
                          metric("load_most"),
                          metric("missing")};
  for (const uint32_t id : good) {
    until_answers(id, 15);
    EXPECT_EQ(state(id).utilisation, 0.75) << state(id).error;
  }
  for (const uint32_t id : full) EXPECT_EQ(state(id).utilisation, 1);
  for (const uint32_t id : bad) {
    until([&] { return state(id).refused >= 10 && state(id).missed >= 10; });
    EXPECT_FALSE(state(id).utilisation);
    EXPECT_NE(state(id).error, "");
  }
  nginx.end();
  until([&] { return state(good[0]).missed >= 5; });
  EXPECT_EQ(state(good[0]).utilisation, 0.75);
  const uint64_t answers = state(good[0]).answers;
  nginx.start();
  until_answers(good[0], answers + 5);
}

TEST_F(LoadSourcesTest, AFigureThatBecomesImpossibleLeavesTheLastGoodOne) {
  std::atomic<int> scrapes = 0;
  const char* values[] = {"0.25", "NaN", "-1", "+Inf", "x", "0.25\nload 0.25"};
  telemetry::AdminHandlers handlers;
  handlers.metrics = [&] {
    return "# TYPE load gauge\nload " + std::string(values[std::min(scrapes++, 5)]) + "\n";
  };
  handlers.ready = [] { return telemetry::Readiness{}; };
  const auto server = telemetry::AdminServer::start({"127.0.0.1", 0}, handlers);
  ASSERT_TRUE(server);
  const auto address = io::resolve("127.0.0.1", (*server)->address().port);
  const uint32_t id = add(*address, LoadSource::kPrometheus, "/metrics", "load");
  until([&] { return state(id).refused >= 8; });
  EXPECT_EQ(state(id).answers, 1u);
  EXPECT_EQ(state(id).utilisation, 0.25);
}

TEST_F(LoadSourcesTest, WhatCannotBeAskedIsRefused) {
  const io::Address address = *io::resolve("127.0.0.1", 1);
  EXPECT_FALSE(sources_->add({LoadSource::kAgent, io::Address{}}));
  EXPECT_FALSE(sources_->add({LoadSource::kNone, address}));
  EXPECT_FALSE(sources_->add({LoadSource::kPrometheus, address, "/", "a b"}));
  EXPECT_FALSE(sources_->add({LoadSource::kHttpJson, address, "/a\r\nb", "x"}));
  EXPECT_FALSE(sources_->add({LoadSource::kHttpJson, address, "/", "x", 0}));
  EXPECT_FALSE(sources_->add({LoadSource::kHttpJson, address, "/", "x", NAN}));
  const auto mute = LoadSources::create(*loop_, {});
  EXPECT_FALSE((*mute)->add({LoadSource::kAgent, address}));
  EXPECT_FALSE(LoadSources::create(*loop_, {.interval = 0}));
}

}  // namespace
}  // namespace ballast::lb
