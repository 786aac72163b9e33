// SPDX-License-Identifier: Apache-2.0
#include "model/lb.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "model/lb_fields.h"

namespace ballast::model {
namespace {

std::vector<Vip> good() {
  Vip vip;
  vip.address = "192.0.2.1";
  vip.port = 80;
  vip.instances.resize(2);
  vip.instances[0].address = "10.0.0.1";
  vip.instances[1].address = "10.0.0.2";
  std::vector<Vip> vips{vip};
  complete(vips);
  return vips;
}

TEST(LbModel, FillsInWhatIsLeftOut) {
  std::vector<Vip> vips = good();
  vips[0].name.clear();
  vips[0].address = "2001:DB8:0::1";
  vips[0].forwarding = Forwarding::kNat;
  vips[0].instances[0].address = "2001:db8:0:0::5";
  vips[0].instances[0].name.clear();
  complete(vips);
  EXPECT_EQ(vips[0].name, "tcp/[2001:db8::1]:80");
  EXPECT_EQ(vips[0].instances[0].port, 80);
  EXPECT_EQ(vips[0].instances[0].name, "[2001:db8::5]:80");
  EXPECT_EQ(vips[0].instances[1].name, "10.0.0.2");
}

TEST(LbModel, SaysWhatIsWrong) {
  EXPECT_FALSE(find_problem(good()));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    const char* key;
    std::function<void(std::vector<Vip>&)> spoil;
  };
  const Case cases[] = {
      {"vip[0].address", [](auto& v) { v[0].address = "web.example"; }},
      {"vip[0].address", [](auto& v) { v[0].address = ""; }},
      {"vip[1].address", [](auto& v) { v.push_back(v[0]); }},
      {"vip[1].name", [](auto& v) { v.push_back(v[0]), v[1].port = 81; }},
      {"vip[0].instance", [](auto& v) { v[0].instances.clear(); }},
      {"vip[0].instance[1].address", [](auto& v) { v[0].instances[1].address = "10.0.0.1"; }},
      {"vip[0].instance[1].name", [](auto& v) { v[0].instances[1].name = "10.0.0.1"; }},
      {"vip[0].instance[0].address", [](auto& v) { v[0].instances[0].address = "10.0.0.300"; }},
      {"vip[0].instance[0].address", [](auto& v) { v[0].instances[0].address = "192.0.2.1"; }},
      {"vip[0].instance[0].weight", [&](auto& v) { v[0].instances[0].weight = nan; }},
      {"vip[0].instance[0].weight", [](auto& v) { v[0].instances[0].weight = -1; }},
      {"vip[0].instance[0].capacity", [](auto& v) { v[0].instances[0].capacity = 0; }},
      {"vip[0].instance[0].port", [](auto& v) { v[0].instances[0].port = 8080; }},
      {"vip[0].instance[0].address",
       [](auto& v) { v[0].forwarding = Forwarding::kNat, v[0].address = "2001:db8::1"; }},
      {"vip[0].instance[0].port",
       [](auto& v) {
         v[0].forwarding = Forwarding::kNat, v[0].port = 0, v[0].instances[0].port = 80;
       }},
      {"vip[1].instance[0].address",
       [](auto& v) {
         v[0].forwarding = Forwarding::kNat, v.push_back(v[0]);
         v[1].port = 81, v[1].name = "other";
         for (auto& vip : v) vip.instances[0].port = 80;
       }},
      {"vip[1].instance[0].address",
       [](auto& v) {
         v[0].forwarding = Forwarding::kNat, v.push_back(v[0]);
         v[1].port = 0, v[1].name = "other";
       }},
      {"vip[0].m", [](auto& v) { v[0].m = 65; }},
      {"vip[0].least_share", [](auto& v) { v[0].least_share = 1.5; }},
      {"vip[0].load_full", [&](auto& v) { v[0].load_full = nan; }},
      {"vip[0].load_port", [](auto& v) { v[0].load = LoadSource::kAgentCheck; }},
      {"vip[0].load_metric",
       [](auto& v) { v[0].load = LoadSource::kPrometheus, v[0].load_port = 9100; }},
      {"vip[0].health_port", [](auto& v) { v[0].health = HealthCheck::kTcp, v[0].port = 0; }},
      {"vip[0].health_path", [](auto& v) { v[0].health_path = "a b"; }},
      {"vip[0].fall", [](auto& v) { v[0].fall = 0; }},
      {"vip[0].mtu", [](auto& v) { v[0].mtu = 68; }},
  };
  for (const Case& each : cases) {
    std::vector<Vip> vips = good();
    each.spoil(vips);
    const auto found = find_problem(vips);
    ASSERT_TRUE(found) << each.key;
    EXPECT_EQ(found->key, each.key) << found->message;
  }
}

TEST(LbModel, AnEmptyVipIsGoodWhereItIsAllowed) {
  std::vector<Vip> vips = good();
  vips[0].instances.clear();
  EXPECT_FALSE(find_problem(vips, true));
}

TEST(LbFields, WhatIsWrittenIsReadBack) {
  Vip vip = good()[0];
  vip.scheduler = Scheduler::kLeastConnections;
  vip.slow_start_ms = 90'000;
  vip.least_share = 0.125;
  vip.load = LoadSource::kHttpJson;
  Vip again;
  for (const auto& field : vip_fields()) {
    const auto set = field.set(again, field.get(vip));
    ASSERT_TRUE(set) << field.key << ": " << set.error().message;
  }
  again.instances = vip.instances;
  EXPECT_EQ(again, vip);
}

TEST(LbFields, RefuseWhatCannotBe) {
  Vip vip;
  Instance instance;
  for (const auto& field : vip_fields()) {
    if (field.form == FieldForm::kText && field.value != std::string("WORD") &&
        field.value != std::string("DURATION"))
      continue;
    for (const char* text : {"", "-1", "nan", "inf", "1x", "99999999999999999999x"})
      EXPECT_FALSE(field.set(vip, text)) << field.key << " took \"" << text << '"';
  }
  for (const auto& field : instance_fields()) {
    if (field.form != FieldForm::kNumber) continue;
    EXPECT_FALSE(field.set(instance, "-0.5")) << field.key;
  }
}

}  // namespace
}  // namespace ballast::model
