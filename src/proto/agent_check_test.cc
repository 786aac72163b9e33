// SPDX-License-Identifier: Apache-2.0
#include "proto/agent_check.h"

#include <gtest/gtest.h>

namespace ballast::proto {
namespace {

using Admin = AgentCheck::Admin;
using Health = AgentCheck::Health;

TEST(AgentCheck, WhatHaproxysManualShows) {
  EXPECT_EQ(parse_agent_check("75%\n")->weight, 0.75);
  EXPECT_EQ(parse_agent_check("0%\r\n")->weight, 0);
  EXPECT_EQ(parse_agent_check("maxconn:30\n")->most_connections, 30u);
  EXPECT_EQ(parse_agent_check("ready\n")->admin, Admin::kReady);
  EXPECT_EQ(parse_agent_check("drain\n")->admin, Admin::kDrain);
  EXPECT_EQ(parse_agent_check("maint\n")->admin, Admin::kMaintenance);
  EXPECT_EQ(parse_agent_check("up\n")->health, Health::kUp);
  for (const char* down : {"down\n", "failed\n", "stopped\n", "down#disk full\n"})
    EXPECT_EQ(parse_agent_check(down)->health, Health::kDown) << down;
}

TEST(AgentCheck, SeveralWordsOnALine) {
  const auto check = parse_agent_check("up, ready\t120% maxconn:5\ndown\n");
  ASSERT_TRUE(check);
  EXPECT_EQ(
      *check,
      (AgentCheck{
          .weight = 1.2, .most_connections = 5, .admin = Admin::kReady, .health = Health::kUp}));
  EXPECT_EQ(parse_agent_check("down #disk full\n")->reason, "disk full");
}

TEST(AgentCheck, WhatIsNoneIsRefused) {
  for (const char* wrong :
       {"", "75%", "\n", "  \n", "75\n", "-5%\n", "%\n", "1e2%\n", "nan%\n", "99999999999%\n",
        "25601%\n", "maxconn:\n", "maxconn:-1\n", "UP\n", "75% frob\n", "HTTP/1.1 200 OK\r\n"}) {
    EXPECT_FALSE(parse_agent_check(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace ballast::proto
