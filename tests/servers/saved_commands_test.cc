// SPDX-License-Identifier: Apache-2.0
// The saved reply to COMMAND that plan is built with, against the server that is installed.
#include <gtest/gtest.h>

#include <algorithm>

#include "redis_server.h"
#include "trace/request_counter.h"

namespace ballast::trace {
namespace {

TEST(SavedCommands, AreTheInstalledServers) {
  const auto server = test::RedisServer::start();
  ASSERT_TRUE(server) << "redis-server is needed";
  test::RedisConnection connection(server->port());
  const auto live = proto::CommandTable::from_reply(connection.command({"COMMAND"}));
  ASSERT_TRUE(live) << live.error().message;
  const bool same_version =
      connection.command({"INFO", "server"}).find("redis_version:7.0.15\r") != std::string::npos;
  const proto::CommandTable& saved = built_in_commands();
  size_t compared = 0;
  for (const proto::CommandInfo& info : live->all()) {
    const auto known = std::find_if(saved.all().begin(), saved.all().end(),
                                    [&](const auto& each) { return each.name == info.name; });
    if (known == saved.all().end()) {
      EXPECT_FALSE(same_version) << info.name;
      continue;
    }
    ++compared;
    EXPECT_EQ(info.may_write_keys(), known->may_write_keys()) << info.name;
    if (!same_version) continue;
    EXPECT_EQ(info.flags, known->flags) << info.name;
    EXPECT_EQ(info.repeatable(), known->repeatable()) << info.name;
    EXPECT_EQ(info.specs.size(), known->specs.size()) << info.name;
  }
  EXPECT_GT(compared, 300U);
  EXPECT_TRUE(!same_version || compared == saved.all().size());
}

}  // namespace
}  // namespace ballast::trace
