// SPDX-License-Identifier: Apache-2.0
#include "telemetry/status.h"

#include <gtest/gtest.h>

namespace ballast::telemetry {
namespace {

Status example() {
  Status status;
  status.tier = "shop";
  status.role = "all";
  status.uptime_seconds = 1.5;
  status.ready = true;
  status.shards = {{"127.0.0.1:7000", "rack-0", true, 10, 2.5, ""},
                   {"127.0.0.1:7001", "rack-0", false, 0, 0, "refused \"it\"\n"}};
  status.nodes = {{"spine-0", "spine", 1, 2, 3, 4, 5, 6, true}};
  status.router = {7, 8, 0.5, 9, 10};
  status.hottest = {{std::string("\0\xff k\\", 5), "spine-0", 11}};
  return status;
}

TEST(Status, GoesThroughJsonAndBack) {
  const std::string json = to_json(example());
  const auto back = parse_status(json);
  ASSERT_TRUE(back) << json;
  EXPECT_EQ(back->hottest[0].key, "\\x00\\xff\\x20k\\x5c");
  Status again = *back;
  again.hottest = example().hottest;
  EXPECT_EQ(to_json(again), json);
  EXPECT_EQ(back->shards[1].error, "refused \"it\"\n");
  EXPECT_EQ(back->router.writes, 10U);
}

TEST(Status, BadUtf8InANameDoesNotBreakTheJson) {
  Status status;
  status.tier = "\xff";
  EXPECT_TRUE(parse_status(to_json(status)));
}

TEST(Status, StrangeAnswersAreRefusedOrLeftAtDefaults) {
  for (const char* json : {"", "[]", "{", "null", "<html>"}) EXPECT_FALSE(parse_status(json));
  const auto status = parse_status(R"({"tier":5,"shards":[{"name":"a","requests":-1},7]})");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->tier, "");
  EXPECT_EQ(status->shards.size(), 2U);
  EXPECT_EQ(status->shards[0].requests, 0U);
}

TEST(Status, LongKeysAreCut) {
  EXPECT_EQ(printable(std::string(1000, 'k')), std::string(128, 'k') + "...");
  EXPECT_EQ(printable(std::string(128, 'k')), std::string(128, 'k'));
}

}  // namespace
}  // namespace ballast::telemetry
