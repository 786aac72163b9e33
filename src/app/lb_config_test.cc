// SPDX-License-Identifier: Apache-2.0
#include "app/lb_config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace ballast::app {
namespace {

class LbFile : public testing::Test {
 protected:
  LbFile() {
    char name[] = "/tmp/ballast-lb-file-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~LbFile() override {
    unlink((folder_ + "/lb.toml").c_str());
    rmdir(folder_.c_str());
    for (const char* name : variables_) unsetenv(name);
  }

  void set(const char* name, const char* value) {
    setenv(name, value, 1);
    variables_.push_back(name);
  }

  Result<model::LbConfig> load(const std::string& text,
                               std::map<std::string, std::string> options = {}) {
    std::ofstream(folder_ + "/lb.toml") << text;
    return load_lb_config({folder_ + "/lb.toml", std::move(options)});
  }

  // Without the folder.
  std::string complaint(const std::string& text) {
    const auto config = load(text);
    if (config) return "good";
    std::string message = config.error().message;
    const size_t at = message.find(folder_ + "/");
    return at == std::string::npos ? message : message.erase(at, folder_.size() + 1);
  }

  std::string folder_;
  std::vector<const char*> variables_;
};

constexpr const char* kLb = "[lb]\ninterfaces = [\"lo\"]\n";
constexpr const char* kVip = "[[vip]]\naddress = \"192.0.2.1\"\nport = 80\n";
constexpr const char* kInstance = "[[vip.instance]]\naddress = \"10.0.0.1\"\n";

TEST_F(LbFile, ReadsSettingsAndVips) {
  const auto config = load(
      "[lb]\ninterfaces = [\"eth0\", \"eth1\"]\ninterval = \"50ms\"\nkeep = true\n"
      "admin = \"off\"\n"
      "[[vip]]\nname = \"web\"\naddress = \"2001:DB8:0::1\"\nport = 443\nscheduler = \"static\"\n"
      "forwarding = \"gue\"\nhealth = \"http\"\nhealth_interval = \"2s\"\nslow_start = \"30s\"\n"
      "least_share = 0.1\n"
      "[[vip.instance]]\nname = \"a\"\naddress = \"10.0.0.1\"\nweight = 2\n"
      "[[vip.instance]]\naddress = \"10.0.0.2\"\noperation = \"drain\"\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->settings.interfaces, (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_EQ(config->settings.interval_ms, 50U);
  EXPECT_TRUE(config->settings.keep);
  EXPECT_TRUE(config->settings.admin.host.empty());
  ASSERT_EQ(config->vips.size(), 1U);
  const model::Vip& vip = config->vips[0];
  EXPECT_EQ(vip.address, "2001:db8::1");
  EXPECT_EQ(vip.scheduler, model::Scheduler::kStatic);
  EXPECT_EQ(vip.forwarding, model::Forwarding::kGue);
  EXPECT_EQ(vip.health_interval_ms, 2000U);
  EXPECT_EQ(vip.slow_start_ms, 30000U);
  EXPECT_EQ(vip.least_share, 0.1);
  ASSERT_EQ(vip.instances.size(), 2U);
  EXPECT_EQ(vip.instances[0].weight, 2);
  EXPECT_EQ(vip.instances[1].name, "10.0.0.2");
  EXPECT_EQ(vip.instances[1].operation, model::Operation::kDrain);
}

TEST_F(LbFile, OptionsBeatEnvironmentBeatsFile) {
  set("BALLAST_LB_INTERVAL", "70ms");
  set("BALLAST_LB_TCP_IDLE", "5m");
  const auto config = load("[lb]\ninterfaces = [\"lo\"]\ninterval = \"50ms\"\nudp_idle = \"9s\"\n" +
                               std::string(kVip) + kInstance,
                           {{"interval", "90ms"}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->settings.interval_ms, 90U);
  EXPECT_EQ(config->settings.tcp_idle_ms, 300'000U);
  EXPECT_EQ(config->settings.udp_idle_ms, 9000U);
  set("BALLAST_LB_INTERVAL", "fast");
  const auto wrong = load(std::string(kLb) + kVip + kInstance);
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.starts_with("BALLAST_LB_INTERVAL: ")) << wrong.error().message;
}

TEST_F(LbFile, NamesFileLineAndKeyOfAMistake) {
  const std::string start = std::string(kLb) + kVip;
  const std::pair<std::string, const char*> rows[] = {
      {start + kInstance, "good"},
      {start, "lb.toml:3: vip[0].instance: "},
      {start + "prt = 1\n" + kInstance, "lb.toml:6: vip[0].prt: there is no such key; did you"},
      {"[lb]\ninterfces = [\"lo\"]\n", "lb.toml:2: lb.interfces: there is no such key; did you"},
      {"lbb = 1\n", "lb.toml:1: lbb: there is no such key"},
      {"[lb\n", "lb.toml:1: "},
      {start + "m = \"16\"\n" + kInstance, "lb.toml:6: vip[0].m: must be a number, without"},
      {start + "m = -1\n" + kInstance, "lb.toml:6: vip[0].m: "},
      {start + "m = 65\n" + kInstance, "lb.toml:6: vip[0].m: "},
      {start + "least_share = nan\n" + kInstance, "lb.toml:6: vip[0].least_share: "},
      {start + "slow_start = 30\n" + kInstance, "lb.toml:6: vip[0].slow_start: must be a string"},
      {start + "slow_start = \"30\"\n" + kInstance, "lb.toml:6: vip[0].slow_start: "},
      {start + "scheduler = \"rr\"\n" + kInstance, "lb.toml:6: vip[0].scheduler: \"rr\" is none"},
      {start + "load = \"prometheus\"\n" + kInstance, "load_port: "},
      {start + "[[vip.instance]]\naddress = \"web1\"\n",
       "lb.toml:7: vip[0].instance[0].address: \"web1\" is no IPv4 or IPv6 address; names are"},
      {start + "[[vip.instance]]\naddress = \"224.0.0.1\"\n", "is no single host's address"},
      {start + "[[vip.instance]]\naddress = \"::\"\n", "is no single host's address"},
      {start + kInstance + "name = \"a\\nb\"\n", "vip[0].instance[0].name: a name holds no"},
      {start + "health_path = \"/a\\tb\"\n" + kInstance, "vip[0].health_path: must begin with /"},
      {start + kInstance + std::string(2000, 'a') + ".b = 1\n", "there is no such key"},
      {std::string(kLb) + "tcp_idle = \"0s\"\n" + kVip + kInstance,
       "lb.toml:3: lb.tcp_idle: 1s or more"},
      {std::string(kLb) + "interval = \"9ms\"\n" + kVip + kInstance,
       "lb.toml:3: lb.interval: from 10ms to 1m"},
      {"[lb]\ninterfaces = [\"lo\", \"a/b\"]\n" + std::string(kVip) + kInstance,
       "lb.toml:2: lb.interfaces: \"a/b\" is no interface's name"},
      {std::string(kLb) + "api = \"/" + std::string(200, 'a') + "\"\n" + kVip + kInstance,
       "lb.toml:3: lb.api: the path is too long"},
      {std::string(kLb) + "keep = true\npins = \"\"\n" + kVip + kInstance,
       "lb.toml:3: lb.keep: needs pins"},
      {start + kInstance + "weight = inf\n", "lb.toml:8: vip[0].instance[0].weight: "},
      {start + kInstance + "weight = -2\n", "lb.toml:8: vip[0].instance[0].weight: "},
      {start + kInstance + kInstance, "lb.toml:9: vip[0].instance[1].address: 10.0.0.1 is"},
      {start + kInstance + kVip + kInstance, "lb.toml:9: vip[1].address: 192.0.2.1 port 80 is"},
      {start + "instance = 3\n", "vip[0].instance: must be tables; write [[vip.instance]]"},
      {"[vip]\naddress = \"192.0.2.1\"\n", "vip: must be tables; write [[vip]]"},
      {std::string(kVip) + kInstance, "interfaces: none is given"},
      {"[lb]\ninterfaces = [\"lo\"]\napi = \"0.0.0.0:80\"\n" + std::string(kVip) + kInstance,
       "lb.toml:3: lb.api: \"0.0.0.0:80\" is not on loopback"},
  };
  for (const auto& [text, wanted] : rows)
    EXPECT_NE(complaint(text).find(wanted), std::string::npos)
        << wanted << " expected, said: " << complaint(text) << "\n"
        << text;
}

TEST_F(LbFile, ASettingOutOfRangeIsToldWhereItWasGiven) {
  const std::string text = std::string(kLb) + "interval = \"9ms\"\n" + kVip + kInstance;
  EXPECT_EQ(load(text, {{"interval", "2m"}}).error().message, "--interval: from 10ms to 1m");
  set("BALLAST_LB_CONNECTIONS", "0");
  EXPECT_EQ(load(text, {{"interval", "1s"}}).error().message,
            "BALLAST_LB_CONNECTIONS: from 1 to 67108864");
}

TEST_F(LbFile, ASecretFileIsToldWhereItWasNamed) {
  const std::string text = std::string(kLb) + "secret_file = \"/no/such\"\n" + kVip + kInstance;
  EXPECT_EQ(complaint(text),
            "lb.toml:3: lb.secret_file: /no/such: cannot be read: No such file or directory");
  EXPECT_TRUE(load(text, {{"secret_file", "/nor/this"}})
                  .error()
                  .message.starts_with("--secret-file: /nor/this: "));
}

TEST_F(LbFile, AKeyOfTooManyPartsIsRefusedBeforeItIsParsed) {
  std::string deep = std::string(kLb) + "\n";
  for (int i = 0; i < 200'000; ++i) deep += "a.";
  EXPECT_NE(complaint(deep + "b = 1\n").find("lb.toml:4: a key of too many parts"),
            std::string::npos)
      << complaint(deep + "b = 1\n").substr(0, 200);
}

TEST_F(LbFile, WithoutVipsNothingIsApplied) {
  for (const char* text : {"", "{}", "[lb]\ninterfaces = [\"lo\"]\n"}) {
    const auto vips = read_vips("it", text, true);
    ASSERT_FALSE(vips) << text;
    EXPECT_NE(vips.error().message.find("vip = []"), std::string::npos);
  }
  EXPECT_TRUE(read_vips("it", "vip = []", true));
}

TEST_F(LbFile, JsonIsReadAlikeAndWrittenAgain) {
  const char* text =
      R"({"generation":7,"vip":[{"name":"web","address":"192.0.2.1","port":80,"protocol":"udp",
         "slow_start":"30s","least_share":0.25,
         "instance":[{"address":"10.0.0.1","weight":1.5},{"address":"fd00::1"}]}]})";
  const auto vips = read_vips("it", text);
  ASSERT_TRUE(vips) << vips.error().message;
  EXPECT_EQ((*vips)[0].slow_start_ms, 30000U);
  const auto again = read_vips("again", vips_json(*vips));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(*vips == *again);
  const std::pair<const char*, const char*> rows[] = {
      {R"({"vip":[{"address":"192.0.2.1","port":80}]})", "vip[0].instance"},
      {R"({"vip":[{"address":"192.0.2.1","prt":80}]})", "did you mean port"},
      {R"({"vip":[{"address":["192.0.2.1"],"port":{}}]})", "vip[0]"},
      {R"({"vip":[7]})", "vip[0]"},
      {R"({"vip":7})", "vip"},
      {R"({"vip":[{"address":"192.0.2.1","port":1e99}]})", "vip[0].port"},
      {R"({"vip":[{"address":"192.0.2.1","port":80,"weight":null}]})", "vip[0].weight"},
      {R"({"vips":[]})", "vips"},
      {R"({"vip":[}")", "is no JSON"},
  };
  for (const auto& [wrong, wanted] : rows) {
    const auto refused = read_vips("it", wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().message.find(wanted), std::string::npos)
        << wrong << ": " << refused.error().message;
  }
}

}  // namespace
}  // namespace ballast::app
