// SPDX-License-Identifier: Apache-2.0
// The request parser against a real redis-server: the same commands found, the same arguments, the
// same error texts.
#include <gtest/gtest.h>

#include "base/random.h"
#include "proto/resp_command.h"
#include "proto/resp_value.h"
#include "proto/slot.h"
#include "redis_server.h"

namespace ballast::proto {
namespace {

constexpr std::string_view kNoCrlf = "bulk string without CRLF";

class RedisTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server = test::RedisServer::start(); }
  static void TearDownTestSuite() { server.reset(); }
  void SetUp() override { ASSERT_TRUE(server) << "redis-server is needed"; }

  static std::unique_ptr<test::RedisServer> server;
};

std::unique_ptr<test::RedisServer> RedisTest::server;

// How many commands were found and, behind them, the error line if there is one.
struct Outcome {
  std::vector<std::vector<std::string>> commands;
  std::string error;
};

Outcome parse_stream(std::string_view stream, bool unauthenticated = false) {
  CommandLimits limits;
  limits.max_args = INT32_MAX;  // redis 7.0's own; the tier's default is lower
  limits.unauthenticated = unauthenticated;
  CommandParser parser(&limits);
  Outcome outcome;
  while (true) {
    const CommandParser::Status status = parser.parse(stream);
    if (status == CommandParser::Status::kNeedMore) return outcome;
    if (status == CommandParser::Status::kError) {
      outcome.error = "-ERR " + std::string(parser.error()) + "\r\n";
      return outcome;
    }
    if (!parser.args().empty()) {
      outcome.commands.emplace_back(parser.args().begin(), parser.args().end());
    }
    stream.remove_prefix(parser.consumed());
  }
}

std::vector<std::string> ask_redis(uint16_t port, std::string_view stream) {
  test::RedisConnection connection(port);
  connection.send_bytes(stream);
  connection.finish_sending();
  std::string rest = connection.read_rest();
  std::vector<std::string> replies;
  std::string_view left = rest;
  while (!left.empty()) {
    ReplyScanner scanner;
    const Scan scan = scanner.scan(left);
    replies.emplace_back(left.substr(0, scan.consumed));
    if (!scan.complete) break;
    left.remove_prefix(scan.consumed);
  }
  return replies;
}

// Replies of the server are one for each command and then the error. False if not comparable:
// what follows a bulk string's bytes is checked here, not by redis.
bool compare(uint16_t port, std::string_view stream, bool unauthenticated = false) {
  const Outcome ours = parse_stream(stream, unauthenticated);
  if (ours.error.find(kNoCrlf) != std::string::npos) return false;
  const std::vector<std::string> theirs = ask_redis(port, stream);
  const size_t commands = ours.commands.size();
  EXPECT_EQ(theirs.size(), commands + (ours.error.empty() ? 0 : 1)) << stream;
  if (!ours.error.empty() && !theirs.empty()) {
    // A CR in an error text becomes a space.
    std::string error;
    append_error(error, std::string_view(ours.error).substr(1, ours.error.size() - 3));
    EXPECT_EQ(theirs.back(), error) << stream;
  }
  for (size_t i = 0; i < std::min(commands, theirs.size()); ++i) {
    const auto& command = ours.commands[i];
    if (command.size() != 2 || command[0] != "ECHO") continue;
    std::string echo;
    append_bulk(echo, command[1]);
    EXPECT_EQ(theirs[i], echo) << stream;
  }
  return true;
}

TEST_F(RedisTest, ErrorTexts) {
  const std::string long_line(66'000, '1');
  for (std::string stream : {"*x\r\n",
                             "*01\r\n",
                             "*-0\r\n",
                             "*\r\n",
                             "* 1\r\n",
                             "*+1\r\n",
                             "*99999999999999999999\r\n",
                             "*2147483648\r\n",
                             "*-1\r\n",
                             "*-20\r\n",
                             "*0\r\n",
                             "\r\n",
                             "\n",
                             "  \r\n",
                             "*1\r\n$-1\r\n",
                             "*1\r\n$-5\r\n",
                             "*1\r\n$2147483645\r\n",
                             "*1\r\n$x\r\n",
                             "*1\r\n$\r\n",
                             "*1\r\n$536870913\r\n",
                             "*1\r\n!3\r\nabc\r\n",
                             "*1\r\n\r\n",
                             "*1\r\n$01\r\n",
                             "*3\r\n$4\r\nECHO\r\nx\r\n",
                             "ECHO \"a\r\n",
                             "ECHO \"a\"b\r\n",
                             "ECHO 'a'b\r\n",
                             "ECHO 'a\r\n",
                             "ECHO a\nECHO b\r\n",
                             "*1\r\n$4\r\nPING\r\nPING\r\n"}) {
    EXPECT_TRUE(compare(server->port(), stream)) << stream;
    EXPECT_TRUE(compare(server->port(), "PING\r\n" + stream + "PING\r\n")) << stream;
  }
  EXPECT_TRUE(compare(server->port(), "*" + long_line));
  EXPECT_TRUE(compare(server->port(), "*1\r\n$" + long_line));
  EXPECT_TRUE(compare(server->port(), long_line));
}

TEST_F(RedisTest, RandomStreams) {
  const uint64_t seed = system_seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  const std::vector<std::string> pieces = {"*2\r\n",
                                           "*2\r\n$4\r\nECHO\r\n",
                                           "$1\r\na\r\n",
                                           "$3\r\na b\r\n",
                                           "$0\r\n\r\n",
                                           "*1\r\n$4\r\nPING\r\n",
                                           "*0\r\n",
                                           "*-1\r\n",
                                           "PING\r\n",
                                           "\r\n",
                                           "ECHO \"a\\x41\\n\"\n",
                                           "ECHO 'b'\r\n",
                                           "*x\r\n",
                                           "$-1\r\n",
                                           "ECHO \"\r\n",
                                           "$2\r\nxy\r\n",
                                           "*1\r\n"};
  int compared = 0;
  for (int round = 0; round < 400 && !HasFailure(); ++round) {
    std::string stream;
    for (size_t i = 1 + random.below(8); i > 0; --i) stream += pieces[random.below(pieces.size())];
    compared += compare(server->port(), stream) ? 1 : 0;
  }
  EXPECT_GT(compared, 300);
}

TEST_F(RedisTest, RandomQuoting) {
  const uint64_t seed = system_seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  int valid = 0;
  for (int round = 0; round < 1500 && !HasFailure(); ++round) {
    std::string line = "EVAL 'return ARGV' 0 ";
    for (size_t i = random.below(14); i > 0; --i) {
      const std::string_view letters = "ab \"\"''\\\\\\xn4F\t\v";
      line += letters[random.below(letters.size())];
    }
    line += "\r\n";
    const Outcome ours = parse_stream(line);
    test::RedisConnection connection(server->port());
    connection.send_bytes(line);
    const std::string theirs = connection.read_reply();
    if (!ours.error.empty()) {
      ASSERT_EQ(theirs, ours.error) << line;
      continue;
    }
    ++valid;
    std::string expected;
    const auto& args = ours.commands.at(0);
    append_array_header(expected, args.size() - 3);
    for (size_t i = 3; i < args.size(); ++i) append_bulk(expected, args[i]);
    ASSERT_EQ(theirs, expected) << line;
  }
  EXPECT_GT(valid, 300);
}

TEST_F(RedisTest, Slots) {
  Random random(3);
  const auto cluster = test::RedisServer::start(
      {"--cluster-enabled", "yes", "--cluster-port", std::to_string(test::free_port())});
  ASSERT_TRUE(cluster);
  test::RedisConnection connection(cluster->port());
  for (int round = 0; round < 500; ++round) {
    std::string key(random.below(30), 'x');
    for (char& byte : key) byte = "{}abc\r\n\0"[random.below(8)];
    std::string expected;
    append_integer(expected, key_slot(key));
    ASSERT_EQ(connection.command({"CLUSTER", "KEYSLOT", key}), expected);
  }
}

TEST_F(RedisTest, Unauthenticated) {
  const auto own = test::RedisServer::start();
  ASSERT_TRUE(own);
  test::RedisConnection admin(own->port());
  ASSERT_EQ(admin.command({"CONFIG", "SET", "requirepass", "secret"}), "+OK\r\n");
  for (std::string stream : {"*11\r\n", "*10\r\n", "*1\r\n$16385\r\n", "*1\r\n$16384\r\n"}) {
    EXPECT_TRUE(compare(own->port(), stream, true)) << stream;
  }
}

}  // namespace
}  // namespace ballast::proto
