// SPDX-License-Identifier: Apache-2.0
#include "model/tier.h"

#include <gtest/gtest.h>

#include <functional>

namespace ballast::model {
namespace {

TierConfig two_racks() {
  TierConfig config;
  config.racks = {{"rack-0", {{"127.0.0.1", 7000}, {"127.0.0.1", 7001}}, {"127.0.0.1", 7100}},
                  {"rack-1", {{"127.0.0.1", 7002}}, {"127.0.0.1", 7101}}};
  config.spines = {{"spine-0", {"127.0.0.1", 7200}}, {"spine-1", {"127.0.0.1", 7201}}};
  return config;
}

TEST(Endpoint, ReadsItsThreeForms) {
  EXPECT_EQ(*parse_endpoint("db.example:6379"), (Endpoint{"db.example", 6379}));
  EXPECT_EQ(*parse_endpoint("[::1]:0"), (Endpoint{"::1", 0}));
  EXPECT_EQ(*parse_endpoint(":6380"), (Endpoint{"127.0.0.1", 6380}));
  EXPECT_EQ(*parse_endpoint(":6380", "0.0.0.0"), (Endpoint{"0.0.0.0", 6380}));
  for (const char* text : {"db.example:6379", "[::1]:0", "10.0.0.1:65535"}) {
    EXPECT_EQ(to_string(*parse_endpoint(text)), text);
  }
  EXPECT_EQ(to_string(Endpoint{}), "");
}

TEST(Endpoint, RefusesTheRestAndSaysWhatIsRight) {
  for (const char* text :
       {"", "host", "6379", "host:", "host:x", "host:65536", "host:-1", "host:+1", "host: 1",
        "::1:6379", "[::1]", "[]:1", "[host]:1", "[::1:1", "a b:1", "a,b:1", "a:1:2", "host:1 "}) {
    const auto result = parse_endpoint(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_NE(result.error().message.find("host:port"), std::string::npos) << text;
  }
}

TEST(TierConfig, AGoodOneHasNoProblem) {
  TierConfig config = two_racks();
  EXPECT_FALSE(find_problem(config, Role::kAll));
  EXPECT_FALSE(find_problem(config, Role::kRouter));
  config.role_name = "rack-1";
  EXPECT_FALSE(find_problem(config, Role::kLeaf));
  config.role_name = "spine-1";
  EXPECT_FALSE(find_problem(config, Role::kSpine));
  config.spines = numbered_spines(3);
  config.racks[0].leaf = config.racks[1].leaf = {};
  EXPECT_FALSE(find_problem(config, Role::kAll));
}

struct BadCase {
  const char* key;
  Role role;
  std::function<void(TierConfig&)> spoil;
};

TEST(TierConfig, EachBadValueIsNamedByItsKey) {
  const std::vector<BadCase> cases = {
      {"rack", Role::kAll, [](auto& c) { c.racks.clear(); }},
      {"tier", Role::kAll, [](auto& c) { c.tier = "a:b"; }},
      {"tier", Role::kAll, [](auto& c) { c.tier = ""; }},
      {"rack[1].name", Role::kAll, [](auto& c) { c.racks[1].name = "rack-0"; }},
      {"rack[0].name", Role::kAll, [](auto& c) { c.racks[0].name = ""; }},
      {"spine[0].name", Role::kAll, [](auto& c) { c.spines[0].name = "rack-0"; }},
      {"rack[1].shards", Role::kAll, [](auto& c) { c.racks[1].shards.clear(); }},
      {"rack[1].shards", Role::kAll, [](auto& c) { c.racks[1].shards[0].port = 0; }},
      {"rack[1].shards", Role::kAll, [](auto& c) { c.racks[1].shards[0].port = 7000; }},
      {"rack[1].leaf", Role::kRouter, [](auto& c) { c.racks[1].leaf = {}; }},
      {"spine[1].address", Role::kRouter, [](auto& c) { c.spines[1].address = {}; }},
      {"spine[1].address", Role::kRouter, [](auto& c) { c.spines[1].address.port = 7200; }},
      {"spines", Role::kAll, [](auto& c) { c.spines = numbered_spines(257); }},
      {"name", Role::kLeaf, [](auto& c) { c.role_name = "spine-0"; }},
      {"name", Role::kSpine, [](auto& c) { c.role_name = "rack-0"; }},
      {"listen", Role::kAll, [](auto& c) { c.listen = {}; }},
      {"admin", Role::kAll, [](auto& c) { c.admin = c.listen; }},
      {"sample", Role::kAll, [](auto& c) { c.sample = 0; }},
      {"max_object", Role::kAll, [](auto& c) { c.max_object = 0; }},
      {"cache_memory", Role::kAll, [](auto& c) { c.cache_memory = c.max_object - 1; }},
      {"shard_rate", Role::kAll, [](auto& c) { c.shard_rate = -1; }},
      {"node_rate", Role::kAll, [](auto& c) { c.node_rate = -1; }},
      {"heartbeat", Role::kAll, [](auto& c) { c.heartbeat_ms = 9; }},
      {"lease", Role::kAll, [](auto& c) { c.lease_ms = 599; }},
      {"lease", Role::kAll, [](auto& c) { c.lease_ms = 60001; }},
      {"drift_margin", Role::kAll, [](auto& c) { c.drift_margin_ms = 0; }},
      {"drift_margin", Role::kAll, [](auto& c) { c.drift_margin_ms = c.lease_ms; }},
      {"window", Role::kAll, [](auto& c) { c.window_ms = 0; }},
      {"shard_timeout", Role::kAll, [](auto& c) { c.shard_timeout_ms = 0; }},
      {"connect_timeout", Role::kAll, [](auto& c) { c.connect_timeout_ms = 0; }},
      {"max_clients", Role::kAll, [](auto& c) { c.max_clients = 0; }},
      {"max_bulk", Role::kAll, [](auto& c) { c.max_bulk = 0; }},
      {"query_limit", Role::kAll, [](auto& c) { c.query_limit = c.max_bulk - 1; }},
      {"client_output_limit", Role::kAll, [](auto& c) { c.client_output_limit = 1; }},
      {"output_memory", Role::kAll, [](auto& c) { c.output_memory = kMiB; }},
      {"tls_key", Role::kAll, [](auto& c) { c.tls = Tls{"cert.pem", "", "", {}}; }},
      {"tls_cert", Role::kAll, [](auto& c) { c.tls = Tls{"", "key.pem", "", {}}; }},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    TierConfig config = two_racks();
    cases[i].spoil(config);
    const auto problem = find_problem(config, cases[i].role);
    ASSERT_TRUE(problem) << i << " " << cases[i].key;
    EXPECT_EQ(problem->key, cases[i].key) << i << ": " << problem->message;
    EXPECT_FALSE(problem->message.empty());
  }
}

}  // namespace
}  // namespace ballast::model
