// SPDX-License-Identifier: Apache-2.0
// The node's rules one by one, with a scripted home.
#include "cache/node.h"

#include <gtest/gtest.h>

#include "balance/hash.h"

namespace ballast::cache {
namespace {

struct Sent : NodeOutput {
  void send(uint32_t, ToHome message) override { messages.push_back(std::move(message)); }
  template <typename Body>
  std::vector<Body> take() {
    std::vector<Body> taken;
    std::erase_if(messages, [&](ToHome& message) {
      auto* body = std::get_if<Body>(&message);
      if (body != nullptr) taken.push_back(*body);
      return body != nullptr;
    });
    return taken;
  }
  std::vector<ToHome> messages;
};

class NodeTest : public testing::Test {
 public:
  const Node::Reply* get(std::string_view key, std::string_view command = "") {
    return node->lookup({0, key, balance::key_hash(key), command}, 1, now);
  }
  void from_home(decltype(ToNode::body) body, uint64_t epoch = 1) {
    node->on_message(0, ToNode{epoch, std::move(body)}, now);
  }
  void lease() {
    const auto renewals = out.take<Renew>();
    ASSERT_FALSE(renewals.empty());
    from_home(Lease{renewals.back().seq});
  }
  void start(NodeConfig with = {}) {
    with.incarnation = 5;
    with.shards = 1;
    config = with;
    node = std::make_unique<Node>(with, out);
    node->on_home(0, true, now);
    lease();
  }
  // Reads the key until the node asks for a copy; its id.
  uint64_t admit(std::string_view key) {
    for (int i = 0; i < 8; ++i) {
      get(key);
      for (const Admit& asked : out.take<Admit>()) {
        if (asked.key == key) return asked.copy_id;
      }
    }
    return 0;
  }
  void fill(const std::string& key, uint64_t id, uint64_t version, std::string reply,
            int64_t ttl = -1) {
    from_home(Fill{key, "", std::move(reply), id, version, ttl, 1});
  }

  Nanos now = 50 * kSecond;
  NodeConfig config;
  Sent out;
  std::unique_ptr<Node> node;
};

TEST_F(NodeTest, HotKeyIsAdmittedFilledAndServed) {
  start();
  EXPECT_EQ(get("k"), nullptr);
  const uint64_t id = admit("k");
  ASSERT_NE(id, 0u);
  EXPECT_EQ(get("k"), nullptr);
  fill("k", id, 3, "$1\r\nx\r\n");
  ASSERT_NE(get("k"), nullptr);
  EXPECT_EQ(get("k")->resp3, "$1\r\nx\r\n");
  EXPECT_EQ(get("k")->resp2, "$1\r\nx\r\n");
  EXPECT_EQ(node->holding("k", balance::key_hash("k"), "", now), Node::Holding::kReply);
  EXPECT_EQ(node->stats().hits, 3u);
  EXPECT_EQ(node->hottest(3).at(0).first, "k");
}

TEST_F(NodeTest, NilAndEmptyAreOrdinary) {
  start();
  fill("", admit(""), 1, "_\r\n");
  ASSERT_NE(get(""), nullptr);
  EXPECT_EQ(get("")->resp3, "_\r\n");
  EXPECT_EQ(get("")->resp2, "$-1\r\n");
  fill("e", admit("e"), 1, "$0\r\n\r\n");
  ASSERT_NE(get("e"), nullptr);
  EXPECT_EQ(get("e")->resp2, "$0\r\n\r\n");
}

TEST_F(NodeTest, MapIsAnArrayInResp2) {
  start();
  fill("h", admit("h"), 1, "%1\r\n$1\r\na\r\n$1\r\nb\r\n");
  ASSERT_NE(get("h"), nullptr);
  EXPECT_EQ(get("h")->resp3, "%1\r\n$1\r\na\r\n$1\r\nb\r\n");
  EXPECT_EQ(get("h")->resp2, "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
}

TEST_F(NodeTest, NothingIsServedAfterTheLease) {
  start();
  fill("k", admit("k"), 1, "$1\r\nx\r\n");
  now += config.lease - 1;
  EXPECT_NE(get("k"), nullptr);
  now += 1;
  EXPECT_EQ(get("k"), nullptr);
}

TEST_F(NodeTest, LeaseCountsFromTheRequestAndALapsedOneIsNotRevived) {
  start();
  fill("k", admit("k"), 1, "$1\r\nx\r\n");
  now += config.heartbeat;
  node->tick(now);
  const auto renewal = out.take<Renew>().at(0);
  now += config.lease - config.heartbeat;  // the first lease is over, the answer comes now
  from_home(Lease{renewal.seq});
  EXPECT_TRUE(node->lease_runs(0, now));
  EXPECT_EQ(get("k"), nullptr);
  EXPECT_EQ(node->stats().lapses, 1u);
  now += config.heartbeat;
  EXPECT_FALSE(node->lease_runs(0, now));
}

TEST_F(NodeTest, InvalidationDropsAndIsAlwaysAnswered) {
  start();
  const uint64_t id = admit("k");
  fill("k", id, 3, "$1\r\nx\r\n");
  from_home(Invalidate{"k", 4});
  from_home(Invalidate{"unknown", 9});
  auto acks = out.take<Ack>();
  ASSERT_EQ(acks.size(), 2u);
  EXPECT_EQ(acks[0].version, 4u);
  EXPECT_EQ(acks[0].epoch, 1u);
  EXPECT_EQ(get("k"), nullptr);
  fill("k", id, 3, "$1\r\nx\r\n");  // late
  EXPECT_EQ(get("k"), nullptr);
  fill("k", id, 4, "$1\r\ny\r\n");
  EXPECT_NE(get("k"), nullptr);
  from_home(Invalidate{"k", 4});  // repeated
  EXPECT_NE(get("k"), nullptr);
}

TEST_F(NodeTest, FillOfAnEarlierCopyIsNotTaken) {
  start();
  const uint64_t first = admit("k");
  from_home(Refuse{"k", first});
  now += 2 * config.lease;
  node->tick(now);
  lease();
  const uint64_t second = admit("k");
  ASSERT_NE(second, 0u);
  ASSERT_NE(second, first);
  fill("k", first, 9, "$1\r\nx\r\n");
  EXPECT_EQ(get("k"), nullptr);
  EXPECT_EQ(out.take<Release>().at(0).copy_id, first);  // corrects the home's record
}

TEST_F(NodeTest, RefusalIsNotAskedAgainAtOnce) {
  start();
  from_home(Refuse{"k", admit("k")});
  EXPECT_EQ(admit("k"), 0u);
  fill("l", admit("l"), 1, "");  // too large or an error
  EXPECT_EQ(admit("l"), 0u);
  EXPECT_EQ(node->stats().copies, 0u);
}

TEST_F(NodeTest, UncacheableCommandLeavesTheOthers) {
  start();
  const uint64_t id = admit("k");
  fill("k", id, 1, "$1\r\nx\r\n");
  get("k", "HGETALL");
  EXPECT_EQ(out.take<Admit>().at(0).copy_id, id);
  from_home(Fill{"k", "HGETALL", "", id, 1, -1, 1});
  get("k", "HGETALL");
  EXPECT_TRUE(out.take<Admit>().empty());
  EXPECT_NE(get("k"), nullptr);
}

TEST_F(NodeTest, LostAdmissionIsRepeated) {
  start();
  const uint64_t id = admit("k");
  get("k");
  EXPECT_TRUE(out.take<Admit>().empty());
  now += config.lease / 2;
  get("k");
  EXPECT_EQ(out.take<Admit>().at(0).copy_id, id);
}

TEST_F(NodeTest, CopyDoesNotOutliveTheObject) {
  start();
  const Nanos sent = now;
  const uint64_t id = admit("k");
  now += 100 * kMillisecond;
  fill("k", id, 1, "$1\r\nx\r\n", 300);
  now = sent + 300 * kMillisecond - 1;
  EXPECT_NE(get("k"), nullptr);
  now += 1;
  EXPECT_EQ(get("k"), nullptr);
  EXPECT_EQ(out.take<Admit>().size(), 1u);
}

TEST_F(NodeTest, NewHomeEndsWhatTheFormerGave) {
  start();
  fill("k", admit("k"), 7, "$1\r\nx\r\n");
  from_home(Invalidate{"other", 1}, 2);
  EXPECT_FALSE(node->lease_runs(0, now));
  EXPECT_EQ(node->stats().copies, 0u);
  from_home(Lease{1}, 1);  // of the former one, late
  EXPECT_FALSE(node->lease_runs(0, now));
  from_home(Lease{1}, 2);
  EXPECT_TRUE(node->lease_runs(0, now));
}

TEST_F(NodeTest, DropAllIsDoneOnceAndAlwaysAnswered) {
  start();
  fill("k", admit("k"), 1, "$1\r\nx\r\n");
  from_home(DropAll{5});
  EXPECT_EQ(get("k"), nullptr);
  fill("l", admit("l"), 6, "$1\r\nx\r\n");
  from_home(DropAll{5});
  EXPECT_NE(get("l"), nullptr);
  EXPECT_EQ(out.take<DropAllAck>().size(), 2u);
}

TEST_F(NodeTest, CopyWrittenMoreThanReadIsReleased) {
  start();
  const uint64_t id = admit("k");
  uint64_t version = 1;
  fill("k", id, version, "$1\r\nx\r\n");
  for (int i = 0; i < 2; ++i) {
    get("k");
    from_home(Invalidate{"k", ++version});
    fill("k", id, version, "$1\r\nx\r\n");
    EXPECT_TRUE(out.take<Release>().empty());
  }
  for (int i = 0; i < 2; ++i) {
    from_home(Invalidate{"k", ++version});
    fill("k", id, version, "$1\r\nx\r\n");
  }
  EXPECT_EQ(out.take<Release>().size(), 1u);
  EXPECT_EQ(node->stats().copies, 0u);
}

TEST_F(NodeTest, MemoryAndObjectsAreBounded) {
  start({.memory = 64 << 10, .max_reply = 8 << 10});
  for (int i = 0; i < 100; ++i) {
    const std::string key = "k" + std::to_string(i);
    for (int j = 0; j < 4 * i + 4; ++j) get(key);  // each hotter than all before
    auto asked = out.take<Admit>();
    if (!asked.empty()) fill(key, asked[0].copy_id, 1, "+" + std::string(4 << 10, 'x') + "\r\n");
    EXPECT_LE(node->stats().bytes, config.memory);
  }
  EXPECT_GT(node->stats().evictions, 10u);
  EXPECT_EQ(out.take<Release>().size(), node->stats().evictions);

  start({.objects = 3});
  for (int i = 0; i < 20; ++i) admit("k" + std::to_string(i));
  EXPECT_EQ(node->stats().copies, 3u);
}

TEST_F(NodeTest, LoadIsOfTheLastWindow) {
  start();
  for (int i = 0; i < 100; ++i) get("k");
  EXPECT_EQ(node->load(now), 100u);
  now += 3 * config.window;
  EXPECT_EQ(node->load(now), 0u);
}

}  // namespace
}  // namespace ballast::cache
