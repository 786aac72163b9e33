// SPDX-License-Identifier: Apache-2.0
#include "app/ipvs_command.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ballast::app {
namespace {

using model::Forwarding;
using model::Scheduler;
using model::Vip;

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> all;
  for (std::string word; stream >> word;) all.push_back(word);
  return all;
}

// "" when the line was done.
std::string said(const std::string& line, std::vector<Vip>& vips) {
  const auto command = parse_ipvs(words(line));
  if (!command) return command.error().message;
  const Result<> done = apply_ipvs(*command, vips);
  return done ? "" : done.error().message;
}

TEST(Ipvs, BuildsServicesAndServers) {
  std::vector<Vip> vips;
  EXPECT_EQ(said("-A -t 192.0.2.1:80 -s rr", vips), "");
  EXPECT_EQ(said("-A -u [2001:db8::1]:53", vips), "");
  EXPECT_EQ(said("-a -t 192.0.2.1:80 -r 10.0.0.1:80 -w 3", vips), "");
  EXPECT_EQ(said("--add-server --tcp-service=192.0.2.1:80 --real-server 10.0.0.2 -g", vips), "");
  EXPECT_EQ(said("-a -u [2001:db8::1]:53 -r [fd00::1]:5353 -m -w0", vips), "");
  ASSERT_EQ(vips.size(), 2U);
  EXPECT_EQ(vips[0].scheduler, Scheduler::kEcmp);
  EXPECT_EQ(vips[0].forwarding, Forwarding::kL2);
  ASSERT_EQ(vips[0].instances.size(), 2U);
  EXPECT_EQ(vips[0].instances[0].weight, 3);
  EXPECT_EQ(vips[0].instances[1].address, "10.0.0.2");
  EXPECT_EQ(vips[1].scheduler, Scheduler::kLeastConnections);
  EXPECT_EQ(vips[1].forwarding, Forwarding::kNat);
  EXPECT_EQ(vips[1].instances[0].port, 5353);
  EXPECT_EQ(vips[1].instances[0].weight, 0);

  EXPECT_EQ(said("-e -t 192.0.2.1:80 -r 10.0.0.1:80 -w 0", vips), "");
  EXPECT_EQ(vips[0].instances[0].weight, 0);
  EXPECT_EQ(said("-E -t 192.0.2.1:80 -s awfd", vips), "");
  EXPECT_EQ(vips[0].scheduler, Scheduler::kAwfd);
  EXPECT_EQ(said("-d -t 192.0.2.1:80 -r 10.0.0.1", vips), "");
  EXPECT_EQ(vips[0].instances.size(), 1U);
  EXPECT_EQ(said("-D -u [2001:db8:0::1]:53", vips), "");
  EXPECT_EQ(vips.size(), 1U);
  EXPECT_EQ(said("-C", vips), "");
  EXPECT_TRUE(vips.empty());
}

TEST(Ipvs, RefusesWhatCannotBe) {
  std::vector<Vip> vips;
  ASSERT_EQ(said("-A -t 192.0.2.1:80", vips), "");
  ASSERT_EQ(said("-a -t 192.0.2.1:80 -r 10.0.0.1", vips), "");
  const std::vector<Vip> before = vips;
  const std::pair<const char*, const char*> rows[] = {
      {"", "no command"},
      {"-t 192.0.2.1:80", "no command"},
      {"-A", "which service?"},
      {"-A -t 192.0.2.1:80", "already"},
      {"-A -t web:80", "names are not looked up"},
      {"-A -t 192.0.2.1:99999", "port"},
      {"-A -t 192.0.2.9:80 -s sh", "there are wlc, lc, wrr, rr, awfd"},
      {"-A -t 192.0.2.9:80 -u 192.0.2.9:80", "a second service"},
      {"-A -D -t 192.0.2.9:80", "a second command"},
      {"-a -t 192.0.2.1:80", "which server?"},
      {"-a -t 192.0.2.9:80 -r 10.0.0.1", "there is no service -t 192.0.2.9:80"},
      {"-a -t 192.0.2.1:80 -r 10.0.0.1:80", "is a server of"},
      {"-a -t 192.0.2.1:80 -r 10.0.0.2 -m", "the same way to all its servers"},
      {"-a -t 192.0.2.1:80 -r 10.0.0.2:81", "only -m changes the port"},
      {"-a -t 192.0.2.1:80 -r 10.0.0.2 -w -1", "a number from 0 up"},
      {"-a -t 192.0.2.1:80 -r 10.0.0.2 -w nan", "a number from 0 up"},
      {"-a -t 192.0.2.1:80 -r 10.0.0.2 -w", "-w needs a value"},
      {"-e -t 192.0.2.1:80 -r 10.0.0.7 -w 1", "is no server of"},
      {"-d -t 192.0.2.1:80 -r 10.0.0.7", "is no server of"},
      {"-D -t 192.0.2.1:81", "there is no service"},
      {"-Z", "counters only grow"},
      {"-A -f 7", "-f is not there"},
      {"--add-servce", "did you mean --add-service?"},
      {"-A -t 192.0.2.9:80 stray", "unexpected argument"},
  };
  for (const auto& [line, wanted] : rows) {
    EXPECT_NE(said(line, vips).find(wanted), std::string::npos) << line << ": " << said(line, vips);
    EXPECT_TRUE(vips == before) << line;
  }
}

TEST(Ipvs, OptionsMayBeJoined) {
  const auto list = parse_ipvs({"-Ln", "--stats"});
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->kind, IpvsCommand::Kind::kList);
  EXPECT_TRUE(list->shows_stats);
  EXPECT_EQ(parse_ipvs({"-ln"})->kind, IpvsCommand::Kind::kList);
  EXPECT_EQ(parse_ipvs({"-Sn"})->kind, IpvsCommand::Kind::kSave);
}

TEST(Ipvs, WhatIsSavedIsRestored) {
  const std::string lines =
      "-A -t 192.0.2.1:80 -s wlc\n"
      "-a -t 192.0.2.1:80 -r 10.0.0.1:80 -g -w 1\n"
      "-a -t 192.0.2.1:80 -r 10.0.0.2:80 -g -w 2.5\n"
      "-A -u 192.0.2.1:53 -s wrr\n"
      "-a -u 192.0.2.1:53 -r 10.0.0.1:5353 -m -w 0\n"
      "-A -t [2001:db8::1]:443 -s awfd\n"
      "-a -t [2001:db8::1]:443 -r 10.0.0.1:443 -i --tun-type gue -w 1\n"
      "-A -t 192.0.2.2:0 -s rr\n"
      "-a -t 192.0.2.2:0 -r 10.0.0.1:0 -i -w 1\n";
  std::vector<Vip> vips;
  const Result<> restored = restore_ipvs("# a comment\n\n" + lines, vips);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(save_ipvs(vips), lines);
  EXPECT_EQ(vips[2].forwarding, Forwarding::kGue);

  // All or nothing, and the line is named.
  std::vector<Vip> kept = vips;
  const Result<> refused =
      restore_ipvs("-A -t 192.0.2.3:80\n-a -t 192.0.2.4:80 -r 10.0.0.1\n", kept);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "line 2: there is no service -t 192.0.2.4:80");
  EXPECT_TRUE(kept == vips);
}

}  // namespace
}  // namespace ballast::app
