// SPDX-License-Identifier: Apache-2.0
// What needs no server; tests/servers holds the table against a real one.
#include "proto/command_table.h"

#include <gtest/gtest.h>

namespace ballast::proto {
namespace {

TEST(CommandTable, RefusesWhatIsNoCommandReply) {
  EXPECT_FALSE(CommandTable::from_reply(std::string_view("-NOAUTH Authentication required.\r\n")));
  EXPECT_FALSE(CommandTable::from_reply(std::string_view("*0\r\n")));
  EXPECT_FALSE(CommandTable::from_reply(std::string_view("*1\r\n:1\r\n")));
  EXPECT_FALSE(CommandTable::from_reply(std::string_view("*1\r\n*1\r\n$3\r\nget\r\n")));
  EXPECT_FALSE(CommandTable::from_reply(std::string_view("*")));
}

// Redis 6: seven columns and no specifications.
TEST(CommandTable, ShortRow) {
  const Result<CommandTable> table = CommandTable::from_reply(std::string_view(
      "*2\r\n*7\r\n$4\r\nmget\r\n:-2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:-1\r\n:1"
      "\r\n*0\r\n*7\r\n$4\r\neval\r\n:-3\r\n*1\r\n+movablekeys\r\n:0\r\n:0\r\n:0\r\n"
      "*0\r\n"));
  ASSERT_TRUE(table);
  std::vector<KeyPosition> positions;
  const std::vector<std::string_view> args = {"MGET", "a", "b"};
  const CommandInfo* mget = table->find(args);
  ASSERT_NE(mget, nullptr);
  EXPECT_TRUE(mget->has(kReadonly));
  ASSERT_TRUE(mget->keys(args, positions));
  EXPECT_EQ(positions, (std::vector<KeyPosition>{{1, false}, {2, false}}));
  EXPECT_FALSE(table->find("eval")->keys(args, positions));
}

}  // namespace
}  // namespace ballast::proto
