// SPDX-License-Identifier: Apache-2.0
// The table against a real server: its COMMAND reply in, its COMMAND GETKEYSANDFLAGS as the truth.
#include "proto/command_table.h"

#include <gtest/gtest.h>

#include <set>

#include "redis_server.h"

namespace ballast::proto {
namespace {

class CommandTableTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server = test::RedisServer::start();
    if (!server) return;
    test::RedisConnection connection(server->port());
    reply = connection.command({"COMMAND"});
    connection.command({"HELLO", "3"});
    reply3 = connection.command({"COMMAND"});
  }
  static void TearDownTestSuite() { server.reset(); }

  void SetUp() override {
    ASSERT_TRUE(server) << "redis-server is needed";
    Result<CommandTable> table = CommandTable::from_reply(reply);
    ASSERT_TRUE(table) << table.error().message;
    table_ = std::move(*table);
  }

  static std::unique_ptr<test::RedisServer> server;
  static std::string reply;
  static std::string reply3;
  CommandTable table_;
};

std::unique_ptr<test::RedisServer> CommandTableTest::server;
std::string CommandTableTest::reply;
std::string CommandTableTest::reply3;

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> result;
  while (!line.empty()) {
    const size_t space = std::min(line.find(' '), line.size());
    result.push_back(line.substr(0, space));
    line.remove_prefix(std::min(space + 1, line.size()));
  }
  return result;
}

// "k1:w k2:r": the keys and whether they are written.
std::string describe(std::span<const std::string_view> args,
                     const std::vector<KeyPosition>& positions) {
  std::string text;
  for (const KeyPosition& position : positions) {
    text += std::string(args[position.index]) + (position.written ? ":w " : ":r ");
  }
  return text;
}

std::string ask_server(test::RedisConnection& connection,
                       const std::vector<std::string_view>& args) {
  std::vector<std::string_view> question = {"COMMAND", "GETKEYSANDFLAGS"};
  question.insert(question.end(), args.begin(), args.end());
  std::string request;
  append_command(request, question);
  connection.send_bytes(request);
  const std::string bytes = connection.read_reply();
  const Result<Value> reply = parse_value(bytes);
  if (!reply) return "no reply: " + bytes;
  if (reply->is_error()) {
    return reply->string.find("no key arguments") != std::string::npos ? "" : reply->string;
  }
  std::string text;
  for (const Value& key : reply->children) {
    bool written = false;
    for (const Value& flag : key.children[1].children) {
      written |= std::set<std::string>{"RW", "OW", "RM", "insert", "delete", "update"}.contains(
          flag.string);
    }
    text += key.children[0].string + (written ? ":w " : ":r ");
  }
  return text;
}

const std::vector<std::string_view> kKnown = {
    "GET k",
    "get k",
    "SET k v EX 10",
    "SET k v GET",
    "MSET k1 v1 k2 v2 k3 v3",
    "MSETNX k1 v1 k2 v2",
    "MGET k1 k2 k3",
    "DEL k1 k2",
    "UNLINK k1",
    "EXISTS k1 k2",
    "TOUCH k1 k2",
    "EVAL script 2 k1 k2 a1 a2",
    "EVAL script 0 a1",
    "EVAL_RO script 1 k1 a1",
    "EVALSHA sha 3 k1 k2 k3",
    "FCALL f 1 k1 a",
    "FCALL_RO f 2 k1 k2",
    "ZUNIONSTORE dest 2 k1 k2 WEIGHTS 1 2",
    "ZINTERSTORE dest 1 k1",
    "ZDIFFSTORE dest 2 k1 k2",
    "ZUNION 2 k1 k2 WITHSCORES",
    "ZINTER 2 k1 k2",
    "ZDIFF 1 k1",
    "ZINTERCARD 2 k1 k2 LIMIT 1",
    "SINTERCARD 3 k1 k2 k3 LIMIT 5",
    "ZRANGESTORE dest src 0 -1",
    "ZMPOP 2 k1 k2 MIN",
    "BZMPOP 0 2 k1 k2 MIN",
    "LMPOP 2 k1 k2 LEFT COUNT 2",
    "BLMPOP 1 1 k1 LEFT",
    "BLPOP k1 k2 k3 0",
    "BRPOP k1 0",
    "BZPOPMIN k1 k2 0",
    "BRPOPLPUSH a b 0",
    "RPOPLPUSH a b",
    "LMOVE a b LEFT RIGHT",
    "BLMOVE a b LEFT RIGHT 0",
    "SMOVE a b m",
    "SINTERSTORE dest k1 k2",
    "SUNIONSTORE dest k1",
    "SDIFF k1 k2",
    "GEORADIUS g 15 37 200 km STORE dest",
    "GEORADIUS g 15 37 200 km STOREDIST dest",
    "GEORADIUS g 15 37 200 km WITHDIST",
    "GEORADIUS g 15 37 200 km store dest",
    "GEORADIUSBYMEMBER g m 200 km STORE dest",
    "GEORADIUS_RO g 15 37 200 km",
    "GEOSEARCHSTORE dest src FROMMEMBER m BYRADIUS 1 km",
    "XREAD COUNT 2 STREAMS s1 s2 0 0",
    "XREAD BLOCK 0 STREAMS s1 $",
    "xread streams s1 s2 s3 0 0 0",
    "XREADGROUP GROUP g c COUNT 1 STREAMS s1 s2 > >",
    "XGROUP CREATE s g $",
    "XGROUP DESTROY s g",
    "XINFO STREAM s",
    "XADD s * f v",
    "XCLAIM s g c 0 1-1",
    "XAUTOCLAIM s g c 0 0",
    "BITOP AND dest k1 k2 k3",
    "BITFIELD k GET u8 0",
    "BITFIELD_RO k GET u8 0",
    "BITCOUNT k",
    "PFMERGE dest k1 k2",
    "PFCOUNT k1 k2",
    "OBJECT ENCODING k",
    "OBJECT FREQ k",
    "MEMORY USAGE k",
    "DEBUG OBJECT k",
    "RENAME a b",
    "COPY a b REPLACE",
    "LCS a b",
    "EXPIRE k 10",
    "PERSIST k",
    "RESTORE k 0 data",
    "DUMP k",
    "APPEND k v",
    "SETRANGE k 1 v",
    "INCRBYFLOAT k 1",
    "GETEX k PERSIST",
    "GETDEL k",
    "HSET k f v",
    "HGETALL k",
    "HRANDFIELD k 2",
    "WATCH k1 k2",
    "PING",
    "MULTI",
    "SUBSCRIBE a b",
    "SPUBLISH channel m",
    "SCAN 0",
    "SSCAN k 0",
    "KEYS *",
    "INFO",
};

TEST_F(CommandTableTest, KeysAreThoseTheServerFinds) {
  test::RedisConnection connection(server->port());
  std::vector<KeyPosition> positions;
  for (std::string_view line : kKnown) {
    const std::vector<std::string_view> args = words(line);
    const CommandInfo* info = table_.find(args);
    ASSERT_NE(info, nullptr) << line;
    ASSERT_TRUE(info->keys(args, positions)) << line;
    const std::string truth = args.size() == 1 ? "" : ask_server(connection, args);
    // Whether BITFIELD writes depends on its arguments: the table says that it may.
    if (truth != "k:r " || !info->has(kWrite)) {
      EXPECT_EQ(describe(args, positions), truth) << line;
    }
  }
}

TEST_F(CommandTableTest, TheSameFromResp3) {
  Result<CommandTable> other = CommandTable::from_reply(reply3);
  ASSERT_TRUE(other) << other.error().message;
  ASSERT_EQ(other->all().size(), table_.all().size());
  std::vector<KeyPosition> one;
  std::vector<KeyPosition> two;
  for (std::string_view line : kKnown) {
    const std::vector<std::string_view> args = words(line);
    const CommandInfo* a = table_.find(args);
    const CommandInfo* b = other->find(args);
    ASSERT_NE(b, nullptr) << line;
    EXPECT_EQ(a->flags, b->flags) << line;
    EXPECT_EQ(a->keys(args, one), b->keys(args, two)) << line;
    EXPECT_EQ(one, two) << line;
  }
}

TEST_F(CommandTableTest, SaysWhenKeysCannotBeKnown) {
  std::vector<KeyPosition> positions;
  for (std::string_view line :
       {"SORT k BY nosort STORE dest", "SORT k", "SORT_RO k", "MIGRATE h 1 k 0 10",
        "MIGRATE h 1  0 10 KEYS a b", "EVAL script x k", "EVAL script"}) {
    const std::vector<std::string_view> args = words(line);
    EXPECT_FALSE(table_.find(args)->keys(args, positions)) << line;
  }
}

// `size` of the words from `skip` on, round and round, as the command's arguments.
void expect_positions_within(const CommandInfo& info, size_t size, size_t skip) {
  const std::vector<std::string_view> tail = {
      "9223372036854775807", "-5", "STREAMS", "KEYS", "STORE", "0", "2"};
  std::vector<std::string_view> args = {info.name};
  for (size_t i = 0; i < size; ++i) args.push_back(tail[(skip + i) % tail.size()]);
  std::vector<KeyPosition> positions;
  if (!info.keys(args, positions)) return;
  for (const KeyPosition& position : positions) {
    ASSERT_GT(position.index, 0u) << info.name;
    ASSERT_LT(position.index, args.size()) << info.name;
  }
}

TEST_F(CommandTableTest, ShortAndHostileArgumentsAreSafe) {
  for (const CommandInfo& info : table_.all()) {
    for (size_t size = 0; size <= 7; ++size) {
      for (size_t skip = 0; skip < 7; ++skip) expect_positions_within(info, size, skip);
    }
  }
}

TEST_F(CommandTableTest, FindsInAnyCaseAndSubcommands) {
  EXPECT_EQ(table_.find("GeT")->name, "get");
  EXPECT_EQ(table_.find("nosuch"), nullptr);
  EXPECT_EQ(table_.find(""), nullptr);
  EXPECT_EQ(table_.find(words("XGROUP create s g $"))->name, "xgroup|create");
  EXPECT_EQ(table_.find(words("xgroup NOSUCH s"))->name, "xgroup");
  EXPECT_EQ(table_.find(words("XGROUP"))->name, "xgroup");
  EXPECT_EQ(table_.find(words("XGROUP|CREATE s")), nullptr);
  EXPECT_EQ(table_.find(words("GET create"))->name, "get");
  EXPECT_EQ(CommandTable().find("get"), nullptr);
  std::set<const CommandInfo*> found;
  for (const CommandInfo& info : table_.all()) {
    const size_t bar = info.name.find('|');
    if (bar == std::string::npos) {
      found.insert(table_.find(info.name));
    } else {
      const std::vector<std::string_view> args = {std::string_view(info.name).substr(0, bar),
                                                  std::string_view(info.name).substr(bar + 1)};
      found.insert(table_.find(args));
    }
  }
  EXPECT_EQ(found.size(), table_.all().size());
  EXPECT_GT(found.size(), 350u);
}

TEST_F(CommandTableTest, FlagsAndTips) {
  EXPECT_TRUE(table_.find("get")->has(kReadonly));
  EXPECT_FALSE(table_.find("get")->has(kWrite));
  EXPECT_TRUE(table_.find("set")->has(kWrite));
  EXPECT_TRUE(table_.find("blpop")->has(kBlocking));
  EXPECT_TRUE(table_.find("eval")->has(kMovablekeys));
  EXPECT_TRUE(table_.find("publish")->has(kPubsub));
  EXPECT_TRUE(table_.find(words("config set a b"))->has(kAdmin));
  EXPECT_TRUE(table_.find("hello")->has(kNoAuth));
  EXPECT_TRUE(table_.find("get")->arity_fits(2));
  EXPECT_FALSE(table_.find("get")->arity_fits(3));
  EXPECT_TRUE(table_.find("mget")->arity_fits(7));
  EXPECT_EQ(table_.find("mget")->request_policy, RequestPolicy::kMultiShard);
  EXPECT_EQ(table_.find("del")->response_policy, ResponsePolicy::kAggSum);
  EXPECT_EQ(table_.find("dbsize")->request_policy, RequestPolicy::kAllShards);
  EXPECT_EQ(table_.find("scan")->request_policy, RequestPolicy::kSpecial);
  for (std::string_view name : {"get", "strlen", "hgetall", "smembers", "zrange", "exists", "type",
                                "lrange", "getrange", "hmget", "zscore"}) {
    EXPECT_TRUE(table_.find(name)->repeatable()) << name;
  }
  for (std::string_view name : {"set", "ttl", "pttl", "scan", "hscan", "srandmember", "hrandfield",
                                "xread", "pfcount", "randomkey", "dump", "time", "eval_ro"}) {
    EXPECT_FALSE(table_.find(name)->repeatable()) << name;
  }
}

// Redis 6: seven columns, no subcommands, keys by range only.
TEST_F(CommandTableTest, ShortRows) {
  Value rows = *parse_value(reply);
  for (Value& row : rows.children) row.children.resize(7);
  const Result<CommandTable> old = CommandTable::from_reply(rows);
  ASSERT_TRUE(old);
  std::vector<KeyPosition> positions;
  for (std::string_view line :
       {"GET k", "MSET k1 v1 k2 v2", "BLPOP k1 k2 0", "PING", "BITOP AND d k"}) {
    const std::vector<std::string_view> args = words(line);
    std::vector<KeyPosition> expected;
    ASSERT_TRUE(table_.find(args)->keys(args, expected));
    ASSERT_TRUE(old->find(args)->keys(args, positions)) << line;
    ASSERT_EQ(positions.size(), expected.size()) << line;
    for (size_t i = 0; i < positions.size(); ++i) EXPECT_EQ(positions[i].index, expected[i].index);
  }
  const std::vector<std::string_view> eval = words("EVAL s 1 k");
  EXPECT_FALSE(old->find(eval)->keys(eval, positions));
}

}  // namespace
}  // namespace ballast::proto
