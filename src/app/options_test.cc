// SPDX-License-Identifier: Apache-2.0
#include "app/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace ballast::app {
namespace {

using model::Role;

class Options : public testing::Test {
 protected:
  Options() {
    char name[] = "/tmp/ballast-options-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~Options() override {
    for (const std::string& path : files_) unlink(path.c_str());
    rmdir(folder_.c_str());
  }

  std::string file(const std::string& text, const std::string& name = "tier.toml") {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    files_.push_back(path);
    return path;
  }

  Result<Settings> load(const Given& given, Role role = Role::kAll) {
    return load_settings(given, role, [this](const char* name) -> const char* {
      const auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    });
  }

  // The message for a wrong tier.toml, without the folder.
  std::string complaint(const std::string& text, Role role = Role::kAll) {
    auto settings = load({file(text), {}}, role);
    if (settings) return "good";
    std::string message = settings.error().message;
    if (message.starts_with(folder_ + "/")) message.erase(0, folder_.size() + 1);
    return message;
  }

  std::string folder_;
  std::vector<std::string> files_;
  std::map<std::string, std::string> environment_;
};

constexpr const char* kRack = "[[rack]]\nshards = [\"127.0.0.1:7000\"]\n";

TEST_F(Options, OptionsBeatEnvironmentBeatsFileBeatsDefaults) {
  Given given{
      file(std::string("sample = 10\nlease = \"2s\"\n[cache]\nmax_object = \"1MiB\"\n") + kRack),
      {}};
  auto settings = load(given);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->config.sample, 10U);
  EXPECT_EQ(settings->config.lease_ms, 2000U);
  EXPECT_EQ(settings->config.max_object, model::kMiB);
  EXPECT_EQ(settings->config.heartbeat_ms, 300U);
  EXPECT_TRUE(settings->origin("sample").text.ends_with("tier.toml:1"));
  EXPECT_TRUE(settings->origin("max_object").text.ends_with("tier.toml:4"));
  EXPECT_EQ(settings->origin("heartbeat").text, "default");

  environment_["BALLAST_SAMPLE"] = "20";
  environment_["BALLAST_LEASE"] = "3s";
  given.options["sample"] = {"30"};
  settings = load(given);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->config.sample, 30U);
  EXPECT_EQ(settings->origin("sample").text, "--sample");
  EXPECT_EQ(settings->config.lease_ms, 3000U);
  EXPECT_EQ(settings->origin("lease").text, "BALLAST_LEASE");
}

TEST_F(Options, EveryOptionIsReadTheSameFromAllThreeSources) {
  const model::TierConfig defaults;
  for (const Option& option : cache_options()) {
    if (option.secret) continue;
    std::string value = option.get(defaults);
    if (option.key == "rack") value = "127.0.0.1:7000,127.0.0.1:7001;127.0.0.1:7002";
    if (value.empty()) value = "some-text";
    model::TierConfig config;
    ASSERT_TRUE(option.set(config, value)) << option.key;
    EXPECT_EQ(option.get(config), value) << option.key;

    environment_ = {{option.environment(), value}};
    const auto lookup = [this](const char* name) {
      const auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    };
    const auto by_variable = merge_settings({}, lookup);
    environment_.clear();
    const auto by_flag = merge_settings({"", {{option.key, {value}}}}, lookup);
    ASSERT_TRUE(by_variable && by_flag) << option.key;
    EXPECT_EQ(option.get(by_variable->config), value) << option.key;
    EXPECT_EQ(option.get(by_flag->config), value) << option.key;
    if (!option.in_file) continue;
    const bool quoted = option.form == Form::kText || option.form == Form::kBytes;
    const auto by_file = merge_settings(
        {file(option.key + " = " + (quoted ? "\"" + value + "\"" : value) + "\n"), {}}, lookup);
    ASSERT_TRUE(by_file) << by_file.error().message;
    EXPECT_EQ(option.get(by_file->config), value) << option.key;
  }
}

TEST_F(Options, MembersFromTheFile) {
  const auto settings = load(
      {file(
           "[[rack]]\nname = \"a\"\nshards = [\"10.0.0.1:1\", \"[::1]:2\"]\nleaf = \"10.0.0.1:3\"\n"
           "[[rack]]\nshards = [\"10.0.0.2:1\"]\nleaf = \"10.0.0.2:3\"\n"
           "[[spine]]\naddress = \"10.0.0.3:4\"\n"),
       {}},
      Role::kRouter);
  ASSERT_TRUE(settings) << settings.error().message;
  const std::vector<model::Rack> racks{{"a", {{"10.0.0.1", 1}, {"::1", 2}}, {"10.0.0.1", 3}},
                                       {"rack-1", {{"10.0.0.2", 1}}, {"10.0.0.2", 3}}};
  EXPECT_EQ(settings->config.racks, racks);
  EXPECT_EQ(settings->config.spines, (std::vector<model::Spine>{{"spine-0", {"10.0.0.3", 4}}}));
}

TEST_F(Options, RacksAndSpinesOfTheCommandLineReplaceTheFiles) {
  const auto settings = load({file(std::string(kRack) + "[[spine]]\nname = \"x\"\n"),
                              {{"rack", {"127.0.0.1:1,127.0.0.1:2", ":3"}}, {"spines", {"4"}}}});
  ASSERT_TRUE(settings) << settings.error().message;
  ASSERT_EQ(settings->config.racks.size(), 2U);
  EXPECT_EQ(settings->config.racks[0].shards.size(), 2U);
  EXPECT_EQ(settings->config.racks[1].name, "rack-1");
  EXPECT_EQ(settings->config.spines.size(), 4U);
  EXPECT_EQ(settings->origin("rack[1].shards").text, "--rack");
}

TEST_F(Options, OneSpineForEachRackUnlessSaidOtherwise) {
  EXPECT_EQ(load({"", {{"rack", {":1", ":2", ":3"}}}})->config.spines.size(), 3U);
  EXPECT_EQ(load({"", {{"rack", {":1"}}, {"spines", {"0"}}}})->config.spines.size(), 0U);
}

TEST_F(Options, AMistakeInTheFileIsNamedByLineAndKey) {
  const std::string rack = kRack;
  EXPECT_EQ(complaint("\nsampel = 3\n" + rack),
            "tier.toml:2: sampel: unknown key; did you mean sample?");
  EXPECT_EQ(complaint("[cache]\nleese = \"1s\"\n" + rack),
            "tier.toml:2: leese: unknown key; did you mean lease?");
  EXPECT_EQ(complaint("[[rack]]\nname = \"a\"\nshard = [\"h:1\"]\n"),
            "tier.toml:3: rack[0].shard: unknown key; did you mean shards?");
  EXPECT_EQ(complaint("bananas = 1\n" + rack), "tier.toml:1: bananas: unknown key");
  EXPECT_EQ(complaint("sample = \"3\"\n" + rack),
            "tier.toml:1: sample: must be a number, without quotes");
  EXPECT_EQ(complaint("sample = -3\n" + rack),
            "tier.toml:1: sample: \"-3\" is not a whole number from 0 to 4294967295");
  EXPECT_EQ(complaint("lease = 3\n" + rack),
            "tier.toml:1: lease: must be a duration in quotes, e.g. \"300ms\"");
  EXPECT_EQ(complaint("admin_commands = \"yes\"\n" + rack),
            "tier.toml:1: admin_commands: must be true or false, without quotes");
  EXPECT_EQ(complaint("mechanism = \"distcahe\"\n" + rack),
            "tier.toml:1: mechanism: \"distcahe\" is not one of: distcache, partition, "
            "replication, nocache");
  EXPECT_EQ(complaint("tier = \"a\"\n[cache]\ntier = \"b\"\n" + rack).substr(0, 41),
            "tier.toml:3: tier: given a second time; i");
  EXPECT_EQ(complaint("[[rack]]\nshards = [\"h:1\",\n  \"h\"]\n").substr(0, 36),
            "tier.toml:3: rack[0].shards: \"h\" is ");
  EXPECT_EQ(complaint("[[rack]]\nshards = \"h:1\"\n").substr(0, 43),
            "tier.toml:2: rack[0].shards: must be a list");
  EXPECT_EQ(complaint("[rack]\nshards = [\"h:1\"]\n").substr(0, 32),
            "tier.toml:1: rack: must be table");
  EXPECT_EQ(complaint("spines = 2\n" + rack + "[[spine]]\nname = \"x\"\n"),
            "tier.toml:4: spine: give either spines = COUNT or [[spine]] tables, not both");
  EXPECT_EQ(complaint("sample = = 3\n").substr(0, 12), "tier.toml:1:");
}

TEST_F(Options, AValueThatCannotRunIsNamedByWhereItCameFrom) {
  const std::string rack = kRack;
  EXPECT_EQ(complaint(rack + "\n[[rack]]\nname = \"rack-0\"\nshards = [\"h:1\"]\n").substr(0, 26),
            "tier.toml:5: rack[1].name:");
  EXPECT_EQ(complaint("heartbeat = \"800ms\"\n" + rack).substr(0, 10), "tier.toml:")
      << "the lease is the default, the file is what to look at";
  EXPECT_EQ(complaint(rack, Role::kRouter).substr(0, 26), "tier.toml:1: rack[0].leaf:");
  EXPECT_EQ(complaint("sample = 3\n").substr(0, 16), "tier.toml: rack:");
  Given given{"", {{"rack", {":1"}}}};
  given.options["sample"] = {"0"};
  EXPECT_EQ(load(given).error().message.substr(0, 14), "--sample: must");
  given.options.erase("sample");
  environment_["BALLAST_LEASE"] = "1ms";
  EXPECT_EQ(load(given).error().message.substr(0, 19), "BALLAST_LEASE: 1ms ");
  environment_["BALLAST_LEASE"] = "soon";
  EXPECT_EQ(load(given).error().message.substr(0, 22), "BALLAST_LEASE: \"soon\" ");
}

TEST_F(Options, AFileThatIsNotThereIsAnError) {
  EXPECT_EQ(load({"/nowhere/tier.toml", {}}).error().message,
            "/nowhere/tier.toml: cannot be read: No such file or directory");
  EXPECT_FALSE(load({folder_, {}}));
}

TEST_F(Options, SecretsComeFromFilesOrTheEnvironmentOnly) {
  EXPECT_EQ(complaint(std::string("password = \"x\"\n") + kRack).substr(0, 56),
            "tier.toml:1: password: a password does not stand here; n");
  const std::string secret = file("s3cret\n", "secret");
  Given given{"", {{"rack", {":1"}}, {"password_file", {secret}}}};
  EXPECT_EQ(load(given)->config.password, "s3cret");
  environment_["BALLAST_SHARD_PASSWORD"] = "other";
  EXPECT_EQ(load(given)->config.shard_password, "other");
  // The option beats the variable, the variable beats the file.
  environment_["BALLAST_PASSWORD"] = "variable";
  EXPECT_EQ(load(given)->config.password, "s3cret");
  const Given by_file{file("password_file = \"" + secret + "\"\n" + kRack), {}};
  EXPECT_EQ(load(by_file)->config.password, "variable");

  given.options["password_file"] = {file("", "empty")};
  EXPECT_NE(load(given).error().message.find("is empty"), std::string::npos);
  given.options["password_file"] = {folder_ + "/none"};
  EXPECT_EQ(load(given).error().message.substr(0, 17), "--password-file: ");
  for (const Option& option : cache_options()) {
    if (!option.secret) continue;
    for (const Flag& flag : settings_flags(given, Role::kAll)) EXPECT_NE(flag.name, option.flag());
  }
}

TEST_F(Options, TlsFilesMustBeThere) {
  const std::string pem = file("x", "cert.pem");
  Given given{"", {{"rack", {":1"}}, {"tls_cert", {pem}}, {"tls_key", {folder_ + "/none"}}}};
  EXPECT_EQ(load(given).error().message.substr(0, 11), "--tls-key: ");
  given.options["tls_key"] = {pem};
  ASSERT_TRUE(load(given));
  EXPECT_TRUE(load(given)->config.tls.has_value());
  given.options["tls_cert"] = {""};
  EXPECT_FALSE(load(given));
}

TEST_F(Options, WhatIsShownReadsBackAsTheSame) {
  const Given given{
      file("sample = 7\nlisten = \"[::1]:1\"\nadmin = \"off\"\nshard_rate = 2500.5\n"
           "cold_reads = \"via-leaf\"\nlease = \"1500ms\"\nshard_user = \"a\\\"b\\\\\"\n"
           "[[rack]]\nname = \"r\"\nshards = [\"h:1\"]\nleaf = \"h:2\"\n"
           "[[spine]]\nname = \"s\"\naddress = \"h:3\"\n"),
      {}};
  environment_["BALLAST_PASSWORD"] = "do-not-show";
  const auto first = load(given, Role::kRouter);
  ASSERT_TRUE(first) << first.error().message;
  const std::string shown = settings_toml(*first, true);
  EXPECT_EQ(shown.find("do-not-show"), std::string::npos);
  EXPECT_EQ(settings_json(*first).find("do-not-show"), std::string::npos);
  const auto second = load({file(shown, "shown.toml"), {}}, Role::kRouter);
  ASSERT_TRUE(second) << second.error().message << "\n" << shown;
  EXPECT_EQ(settings_toml(*second, false), settings_toml(*first, false));
  EXPECT_EQ(second->config.racks, first->config.racks);
  EXPECT_EQ(second->config.spines, first->config.spines);
}

}  // namespace
}  // namespace ballast::app
