// SPDX-License-Identifier: Apache-2.0
#include "telemetry/metrics.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "base/clock.h"

namespace ballast::telemetry {
namespace {

Snapshot example() {
  Snapshot snapshot;
  snapshot.tier = "shop \"1\"\\\n";
  snapshot.role = "all";
  snapshot.router.commands = 1'234'567'890'123;
  snapshot.nodes.resize(2);
  snapshot.nodes[0].node = "spine-0";
  snapshot.nodes[0].layer = "spine";
  snapshot.nodes[0].hits = 7;
  snapshot.nodes[1].node = "rack-0";
  snapshot.nodes[1].layer = "leaf";
  snapshot.shards.resize(1);
  snapshot.shards[0].shard = "127.0.0.1:7000";
  snapshot.shards[0].rack = "rack-0";
  snapshot.shards[0].up = 1;
  snapshot.durations.hot_read.record(80 * kMicrosecond, 3);
  snapshot.durations.hot_read.record(20 * kSecond);
  return snapshot;
}

bool has_line(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

TEST(Metrics, ValuesComeOutUnderTheirNamesAndLabels) {
  const std::string text = "\n" + exposition(example());
  EXPECT_TRUE(has_line(text, "ballast_commands_total 1234567890123")) << text;
  EXPECT_TRUE(has_line(text, "ballast_node_hits_total{node=\"spine-0\",layer=\"spine\"} 7"));
  EXPECT_TRUE(has_line(text, "ballast_node_hits_total{node=\"rack-0\",layer=\"leaf\"} 0"));
  EXPECT_TRUE(has_line(text, "ballast_shard_up{shard=\"127.0.0.1:7000\",rack=\"rack-0\"} 1"));
  EXPECT_TRUE(
      has_line(text, "ballast_process_info{tier=\"shop \\\"1\\\"\\\\\\n\",role=\"all\"} 1"));
  EXPECT_NE(text.find("ballast_build_info{version=\"0."), std::string::npos);
}

TEST(Metrics, HistogramsAreCumulativeInSeconds) {
  const std::string text = exposition(example());
  const std::string name = "ballast_request_duration_seconds";
  EXPECT_TRUE(has_line(text, name + "_count{path=\"hot\"} 4")) << text;
  EXPECT_TRUE(has_line(text, name + "_sum{path=\"hot\"} 20.00024")) << text;
  EXPECT_TRUE(has_line(text, name + "_bucket{path=\"hot\",le=\"5e-05\"} 0")) << text;
  EXPECT_TRUE(has_line(text, name + "_bucket{path=\"hot\",le=\"0.0001\"} 3")) << text;
  EXPECT_TRUE(has_line(text, name + "_bucket{path=\"hot\",le=\"10\"} 3")) << text;
  EXPECT_TRUE(has_line(text, name + "_bucket{path=\"hot\",le=\"+Inf\"} 4")) << text;
}

// The naming rules; tests/faults/test_metrics.py shows the exposition to promtool.
TEST(Metrics, NamesHelpAndOrderFollowTheRules) {
  std::istringstream lines(exposition(example()));
  std::set<std::string> families;
  std::string family, type, line;
  const std::regex good("ballast_[a-z][a-z0-9_]*");
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string hash, word, name;
    words >> hash >> word >> name;
    if (hash == "#" && word == "HELP") {
      EXPECT_TRUE(std::regex_match(name, good)) << name;
      EXPECT_TRUE(families.insert(name).second) << name << " comes twice";
      std::string help;
      EXPECT_TRUE(words >> help) << name << " has no help";
      family = name;
    } else if (hash == "#") {
      EXPECT_EQ(name, family);
      words >> type;
      EXPECT_EQ(type == "counter", name.ends_with("_total")) << name;
      EXPECT_TRUE(type != "histogram" || name.ends_with("_seconds")) << name;
    } else {
      const std::string sample = line.substr(0, line.find_first_of("{ "));
      EXPECT_TRUE(sample == family || type == "histogram") << line;
      EXPECT_TRUE(sample.starts_with(family)) << line;
    }
  }
  EXPECT_GT(families.size(), 40U);
}

}  // namespace
}  // namespace ballast::telemetry
