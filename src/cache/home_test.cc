// SPDX-License-Identifier: Apache-2.0
// The home's rules one by one, with a scripted surrounding.
#include "cache/home.h"

#include <gtest/gtest.h>

#include <functional>

#include "balance/hash.h"

namespace ballast::cache {
namespace {

struct Surroundings : HomeOutput {
  struct ReadAsked {
    uint64_t id;
    std::string key;
    std::vector<CachedCommand> commands;
  };
  void send(Incarnation node, ToNode message) override {
    if (on_send) on_send(node, message);
    sent.emplace_back(node, std::move(message));
  }
  void read(uint64_t id, std::string_view key, std::span<const CachedCommand> commands) override {
    reads.push_back({id, std::string(key), {commands.begin(), commands.end()}});
  }
  void ping(uint64_t id) override { pings.push_back(id); }
  void write_ready(uint64_t token) override { ready.push_back(token); }

  // Messages of one type sent since the last call, with their nodes.
  template <typename Body>
  std::vector<std::pair<Incarnation, Body>> take() {
    std::vector<std::pair<Incarnation, Body>> taken;
    std::erase_if(sent, [&](auto& item) {
      auto* body = std::get_if<Body>(&item.second.body);
      if (body != nullptr) taken.emplace_back(item.first, *body);
      return body != nullptr;
    });
    return taken;
  }

  std::function<void(Incarnation, const ToNode&)> on_send;
  std::vector<std::pair<Incarnation, ToNode>> sent;
  std::vector<ReadAsked> reads;
  std::vector<uint64_t> pings;
  std::vector<uint64_t> ready;
};

class HomeTest : public testing::Test {
 public:
  static constexpr Incarnation kA = 11, kB = 22;

  void start() {
    home.on_fenced(false, now);
    ASSERT_TRUE(home.ready());
  }
  void lease(Incarnation node, uint64_t seq = 1) {
    home.on_message(node, Renew{seq}, now);
    home.on_pong(out.pings.back(), now);
  }
  void answer(std::string_view reply = "$1\r\nx\r\n", int64_t ttl = -1) {
    const auto asked = out.reads.back();
    home.on_read_begun(asked.id);
    const std::vector<std::string_view> replies(asked.commands.size(), reply);
    home.on_read(asked.id, ttl, replies, now);
  }
  void copy(Incarnation node, const std::string& key, uint64_t id) {
    home.on_message(node, Admit{key, "", id}, now);
    answer();
    ASSERT_FALSE(out.take<Fill>().empty());
  }
  bool begin(const std::vector<std::string_view>& keys, uint64_t token) {
    return home.write_begin(keys, hashes(keys), token, now);
  }
  void end(const std::vector<std::string_view>& keys) { home.write_end(keys, hashes(keys), now); }
  void ack(Incarnation node, const Invalidate& invalidate) {
    home.on_message(node, Ack{invalidate.key, invalidate.version, config.epoch}, now);
  }
  static std::vector<uint64_t> hashes(const std::vector<std::string_view>& keys) {
    std::vector<uint64_t> result;
    for (auto key : keys) result.push_back(balance::key_hash(key));
    return result;
  }

  Nanos now = 1000 * kSecond;
  HomeConfig config{.epoch = 7};
  Surroundings out;
  Home home{config, out};
};

using Tokens = std::vector<uint64_t>;

TEST_F(HomeTest, WriteWithoutCopiesGoesAtOnce) {
  start();
  EXPECT_TRUE(begin({"k"}, 1));
  EXPECT_TRUE(begin({"k"}, 2));  // several may be in flight
  end({"k"});
  end({"k"});
}

TEST_F(HomeTest, NothingPassesBeforeTheFence) {
  EXPECT_FALSE(begin({"k"}, 1));
  EXPECT_TRUE(home.write_waits("k", balance::key_hash("k")));
  home.on_fenced(true, now);
  EXPECT_FALSE(home.ready());
  now += config.lease;
  home.tick(now);
  EXPECT_TRUE(out.ready.empty());
  now += config.drift_margin;
  home.tick(now);
  EXPECT_EQ(out.ready, Tokens{1});
  EXPECT_TRUE(home.ready());
}

TEST_F(HomeTest, LeaseNeedsARoundTripBegunAfterTheRenewal) {
  start();
  home.on_message(kA, Renew{1}, now);
  ASSERT_EQ(out.pings.size(), 1u);
  home.on_message(kB, Renew{5}, now);  // after that round trip began: the next one answers it
  EXPECT_EQ(out.pings.size(), 1u);
  home.on_pong(out.pings[0], now);
  auto leases = out.take<Lease>();
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases[0].first, kA);
  ASSERT_EQ(out.pings.size(), 2u);
  home.on_pong(out.pings[1], now);
  leases = out.take<Lease>();
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases[0].second.seq, 5u);
}

TEST_F(HomeTest, FillCarriesTimeToLiveFromTheLastRenewal) {
  start();
  lease(kA, 3);
  home.on_message(kA, Admit{"k", "", 9}, now);
  lease(kA, 4);  // after the read began
  answer("$1\r\nx\r\n", 5000);
  auto fills = out.take<Fill>();
  ASSERT_EQ(fills.size(), 1u);
  EXPECT_EQ(fills[0].second.copy_id, 9u);
  EXPECT_EQ(fills[0].second.reply, "$1\r\nx\r\n");
  EXPECT_EQ(fills[0].second.ttl_ms, 5000 - 250);  // less the drift of clocks
  EXPECT_EQ(fills[0].second.ttl_seq, 3u);
}

TEST_F(HomeTest, MissingKeyIsCachedAsMissing) {
  start();
  lease(kA);
  home.on_message(kA, Admit{"", "", 1}, now);  // the empty key is a key
  answer("_\r\n", -2);
  auto fills = out.take<Fill>();
  ASSERT_EQ(fills.size(), 1u);
  EXPECT_EQ(fills[0].second.ttl_ms, -1);
  EXPECT_FALSE(begin({""}, 1));
}

TEST_F(HomeTest, ErrorsAndLargeRepliesAreNotCached) {
  start();
  lease(kA);
  home.on_message(kA, Admit{"k", "", 1}, now);
  answer("-WRONGTYPE no\r\n");
  EXPECT_EQ(out.take<Fill>().at(0).second.reply, "");
  home.on_message(kA, Admit{"l", "", 2}, now);
  const std::string large(config.max_reply + 1, 'x');
  answer(large);
  EXPECT_EQ(out.take<Fill>().at(0).second.reply, "");
  EXPECT_EQ(home.stats().refusals, 2u);
}

TEST_F(HomeTest, WriteWaitsForEveryHolderThenRefills) {
  start();
  lease(kA);
  lease(kB);
  copy(kA, "k", 1);
  copy(kB, "k", 2);
  EXPECT_FALSE(begin({"k"}, 5));
  auto invalidations = out.take<Invalidate>();
  ASSERT_EQ(invalidations.size(), 2u);
  ack(kA, invalidations[0].second);
  EXPECT_TRUE(out.ready.empty());
  ack(kA, invalidations[0].second);  // repeated
  EXPECT_TRUE(out.ready.empty());
  ack(kB, invalidations[1].second);
  EXPECT_EQ(out.ready, Tokens{5});
  EXPECT_EQ(out.reads.size(), 2u);  // none while the write is in flight
  end({"k"});
  ASSERT_EQ(out.reads.size(), 3u);
  answer("$1\r\ny\r\n");
  auto fills = out.take<Fill>();
  ASSERT_EQ(fills.size(), 2u);
  EXPECT_GE(fills[0].second.version, invalidations[0].second.version);
}

TEST_F(HomeTest, AckOfAnotherHomeOrAnOlderVersionDoesNotCount) {
  start();
  lease(kA);
  copy(kA, "k", 1);
  EXPECT_FALSE(begin({"k"}, 5));
  auto asked = out.take<Invalidate>().at(0).second;
  home.on_message(kA, Ack{"k", asked.version + 1000, config.epoch - 1}, now);
  home.on_message(kA, Ack{"k", asked.version - 1, config.epoch}, now);
  EXPECT_TRUE(out.ready.empty());
  ack(kA, asked);
  EXPECT_EQ(out.ready, Tokens{5});
}

TEST_F(HomeTest, WriteWaitsForASilentHolderOnlyOneLease) {
  start();
  lease(kA);
  copy(kA, "k", 1);
  EXPECT_FALSE(begin({"k"}, 5));
  now += config.repeat;
  home.tick(now);
  EXPECT_EQ(out.take<Invalidate>().size(), 2u);  // repeated
  now += config.patience;
  out.take<Lease>();
  lease(kA, 2);
  EXPECT_TRUE(out.take<Lease>().empty());  // no renewal for who does not answer
  now += config.lease + config.drift_margin - config.patience - config.repeat - 1;
  home.tick(now);
  EXPECT_TRUE(out.ready.empty());
  now += 1;
  home.tick(now);
  EXPECT_EQ(out.ready, Tokens{5});
  end({"k"});
  lease(kA, 3);
  EXPECT_EQ(out.take<Lease>().size(), 1u);
  // It drops all it held when it takes that lease, so it is no holder any more.
  EXPECT_TRUE(begin({"k"}, 6));
}

TEST_F(HomeTest, WritesOfOneKeyGoInOrder) {
  start();
  lease(kA);
  copy(kA, "a", 1);
  EXPECT_FALSE(begin({"a", "b", "a"}, 1));
  EXPECT_FALSE(begin({"b"}, 2));  // "b" has no copies, but queues
  EXPECT_TRUE(home.write_waits("b", balance::key_hash("b")));
  EXPECT_TRUE(begin({"c"}, 3));
  ack(kA, out.take<Invalidate>().at(0).second);
  EXPECT_EQ(out.ready, (Tokens{1, 2}));
  EXPECT_FALSE(home.write_waits("b", balance::key_hash("b")));
}

TEST_F(HomeTest, AnswersFromWithinTheCallLetTheWriteGoAtOnce) {
  start();
  lease(kA);
  copy(kA, "k", 1);
  out.on_send = [&](Incarnation node, const ToNode& message) {
    if (auto* asked = std::get_if<Invalidate>(&message.body)) ack(node, *asked);
  };
  EXPECT_TRUE(begin({"k"}, 5));
  EXPECT_TRUE(out.ready.empty());
  EXPECT_EQ(home.stats().waiting, 0u);
}

TEST_F(HomeTest, CancelledWriteLetsTheNextGo) {
  start();
  lease(kA);
  copy(kA, "k", 1);
  EXPECT_FALSE(begin({"k"}, 1));
  EXPECT_FALSE(begin({"k"}, 2));
  EXPECT_TRUE(home.write_cancel(1));
  EXPECT_FALSE(home.write_cancel(1));
  ack(kA, out.take<Invalidate>().at(0).second);
  EXPECT_EQ(out.ready, Tokens{2});
  end({"k"});
  EXPECT_EQ(out.reads.size(), 2u);  // no write is in flight: the refill
}

TEST_F(HomeTest, FillOvertakenByAWriteIsReadAgain) {
  start();
  lease(kA);
  home.on_message(kA, Admit{"k", "", 1}, now);
  EXPECT_TRUE(begin({"k"}, 1));  // nobody holds a value yet
  answer("$3\r\nold\r\n");
  EXPECT_TRUE(out.take<Fill>().empty());
  EXPECT_EQ(out.reads.size(), 1u);
  end({"k"});
  ASSERT_EQ(out.reads.size(), 2u);
  answer("$3\r\nnew\r\n");
  EXPECT_EQ(out.take<Fill>().at(0).second.reply, "$3\r\nnew\r\n");
}

TEST_F(HomeTest, FillWaitsForWritesBegunBeforeTheAdmission) {
  start();
  lease(kA);
  EXPECT_TRUE(begin({"k"}, 1));
  home.on_message(kA, Admit{"k", "", 1}, now);
  home.tick(now);
  EXPECT_TRUE(out.reads.empty());
  end({"k"});
  EXPECT_EQ(out.reads.size(), 1u);
}

TEST_F(HomeTest, KeyWrittenAllTheTimeIsRefused) {
  start();
  lease(kA);
  home.on_message(kA, Admit{"k", "", 1}, now);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(begin({"k"}, 1));
    end({"k"});
    answer();
  }
  EXPECT_EQ(out.take<Refuse>().size(), 1u);
  EXPECT_TRUE(out.take<Fill>().empty());
}

TEST_F(HomeTest, PushInvalidatesAndRefills) {
  start();
  lease(kA);
  copy(kA, "k", 1);
  home.on_push("k", balance::key_hash("k"), now);
  EXPECT_EQ(out.take<Invalidate>().size(), 1u);
  ASSERT_EQ(out.reads.size(), 2u);
  answer();
  EXPECT_EQ(out.take<Fill>().size(), 1u);
}

TEST_F(HomeTest, PushBeforeTheFirstReplyIsOlderThanTheRead) {
  start();
  lease(kA);
  copy(kA, "k", 1);
  EXPECT_FALSE(begin({"k"}, 1));
  ack(kA, out.take<Invalidate>().at(0).second);
  end({"k"});
  ASSERT_EQ(out.reads.size(), 2u);
  home.on_push("k", balance::key_hash("k"), now);  // of that write
  answer();
  EXPECT_EQ(out.take<Fill>().size(), 1u);
  EXPECT_EQ(out.reads.size(), 2u);
}

TEST_F(HomeTest, PushBetweenTheRepliesMakesTheReadUseless) {
  start();
  lease(kA);
  home.on_message(kA, Admit{"k", "", 1}, now);
  home.on_read_begun(out.reads[0].id);
  home.on_push("k", balance::key_hash("k"), now);
  answer();
  EXPECT_TRUE(out.take<Fill>().empty());
  ASSERT_EQ(out.reads.size(), 2u);
  answer();
  EXPECT_EQ(out.take<Fill>().size(), 1u);
}

TEST_F(HomeTest, LossDropsEverythingAndHoldsWrites) {
  start();
  lease(kA);
  lease(kB);
  copy(kA, "k", 1);
  home.on_lost(now);
  auto drops = out.take<DropAll>();
  ASSERT_EQ(drops.size(), 2u);
  EXPECT_FALSE(begin({"other"}, 1));
  home.on_message(kA, DropAllAck{drops[0].second.version, config.epoch}, now);
  home.on_fenced(false, now);
  EXPECT_FALSE(home.ready());
  home.on_message(kB, DropAllAck{drops[0].second.version, config.epoch - 1}, now);
  EXPECT_FALSE(home.ready());
  home.on_message(kB, DropAllAck{drops[0].second.version, config.epoch}, now);
  EXPECT_TRUE(home.ready());
  EXPECT_EQ(out.ready, Tokens{1});
  EXPECT_TRUE(begin({"k"}, 2));
}

TEST_F(HomeTest, LossWaitsForASilentNodeOneLease) {
  start();
  lease(kA);
  home.on_lost(now);
  home.on_fenced(false, now);
  EXPECT_FALSE(begin({"k"}, 1));
  now += config.lease + config.drift_margin;
  home.tick(now);
  EXPECT_EQ(out.ready, Tokens{1});
}

TEST_F(HomeTest, FlushWaitsForAllAndIsAWriteOfEveryKey) {
  start();
  lease(kA);
  copy(kA, "k", 1);
  EXPECT_FALSE(begin({"k"}, 1));
  EXPECT_FALSE(home.flush_begin(2, now));
  EXPECT_FALSE(begin({"z"}, 3));
  auto drop = out.take<DropAll>().at(0).second;
  home.on_message(kA, DropAllAck{drop.version, config.epoch}, now);
  EXPECT_EQ(out.ready, (Tokens{1, 2, 3}));
  home.on_message(kA, Admit{"k", "", 2}, now);
  EXPECT_EQ(out.reads.size(), 1u);  // not while the flush is in flight
  end({"k"});
  EXPECT_EQ(out.reads.size(), 1u);
  home.flush_end(now);
  EXPECT_EQ(out.reads.size(), 2u);
}

TEST_F(HomeTest, ReleasedCopyIsNotWaitedFor) {
  start();
  lease(kA);
  copy(kA, "k", 1);
  home.on_message(kA, Release{"k", 2}, now);  // another copy's
  EXPECT_FALSE(begin({"k"}, 1));
  home.on_message(kA, Release{"k", 1}, now);
  EXPECT_EQ(out.ready, Tokens{1});
  EXPECT_EQ(home.stats().entries, 0u);
}

TEST_F(HomeTest, LateAdmissionOfAnEarlierCopyIsIgnored) {
  start();
  lease(kA);
  copy(kA, "k", 5);
  home.on_message(kA, Admit{"k", "", 4}, now);
  EXPECT_EQ(out.reads.size(), 1u);
}

TEST_F(HomeTest, SeveralCommandsOfOneKey) {
  start();
  lease(kA);
  lease(kB);
  const std::string hget = "*3\r\n$4\r\nHGET\r\n$1\r\nk\r\n$1\r\nf\r\n";
  copy(kA, "k", 1);
  home.on_message(kB, Admit{"k", hget, 2}, now);
  EXPECT_EQ(out.reads.back().commands, std::vector<CachedCommand>{hget});
  answer();
  auto fills = out.take<Fill>();
  ASSERT_EQ(fills.size(), 1u);
  EXPECT_EQ(fills[0].first, kB);
  home.on_push("k", balance::key_hash("k"), now);
  EXPECT_EQ(out.reads.back().commands.size(), 2u);
  for (int i = 0; i < 40; ++i) {
    home.on_message(kB, Admit{"k", "*" + std::to_string(i), 2}, now);
  }
  EXPECT_GE(home.stats().refusals, 8u);  // commands of a key are bounded
}

TEST(HomeBounds, DirectoryIsBounded) {
  Surroundings out;
  Home home{HomeConfig{.max_entries = 2}, out};
  home.on_fenced(false, 0);
  home.on_message(1, Renew{1}, 0);
  home.on_pong(out.pings.back(), 0);
  for (const char* key : {"a", "b", "c"}) home.on_message(1, Admit{key, "", 1}, 0);
  EXPECT_EQ(out.take<Refuse>().size(), 1u);
  EXPECT_EQ(home.stats().entries, 2u);
}

TEST_F(HomeTest, ForgottenNodesLeaveTheDirectory) {
  start();
  lease(kA);
  copy(kA, "k", 1);
  now += 20 * config.lease;
  home.tick(now);
  home.tick(now);
  EXPECT_EQ(home.stats().entries, 0u);
}

}  // namespace
}  // namespace ballast::cache
