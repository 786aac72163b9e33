// SPDX-License-Identifier: Apache-2.0
// ballast config check and config show: what a configuration says before anything is started.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "app/options.h"
#include "app/subcommand.h"

namespace ballast::app {
namespace {

const char* environment_value(const char* name) { return std::getenv(name); }

Result<model::Role> parse_role(const std::string& text) {
  for (const model::Role role :
       {model::Role::kAll, model::Role::kRouter, model::Role::kLeaf, model::Role::kSpine}) {
    if (model::to_string(role) == text) return role;
  }
  return fail(ErrorCode::kInvalid,
              fmt::format("\"{}\" is not one of: all, router, leaf, spine", text));
}

// A file in which a leaf has an address is meant for several processes.
model::Role likely_role(const model::TierConfig& config) {
  const bool apart = std::any_of(config.racks.begin(), config.racks.end(),
                                 [](const model::Rack& rack) { return !rack.leaf.host.empty(); });
  return apart ? model::Role::kRouter : model::Role::kAll;
}

Flag switch_flag(const char* name, const char* help, bool& into) {
  return {.name = name, .help = help, .set = [&into](const std::string&) -> Result<> {
            into = true;
            return {};
          }};
}

std::vector<Flag> all_flags(Given& given) {
  std::vector<Flag> flags = settings_flags(given, model::Role::kAll);
  const std::string name = find_option("name")->flag();
  for (Flag& flag : settings_flags(given, model::Role::kLeaf)) {
    if (flag.name == name) flags.push_back(std::move(flag));
  }
  return flags;
}

size_t shard_count(const model::TierConfig& config) {
  size_t count = 0;
  for (const model::Rack& rack : config.racks) count += rack.shards.size();
  return count;
}

}  // namespace

int run_config_check(const Arguments& arguments) {
  Given given;
  std::optional<model::Role> role;
  bool json = false;
  CommandLine command{.name = "ballast config check",
                      .summary = "says whether a configuration is good, without starting anything",
                      .flags = all_flags(given)};
  command.flags.insert(command.flags.begin(), switch_flag("--json", "result as JSON", json));
  command.flags.insert(command.flags.begin(),
                       {.name = "--role",
                        .value = "all|router|leaf|spine",
                        .help = "the process it is checked for",
                        .default_text = "router when a leaf has an address, else all",
                        .set = [&](const std::string& text) -> Result<> {
                          auto parsed = parse_role(text);
                          if (!parsed) return Unexpected(parsed.error());
                          role = *parsed;
                          return {};
                        }});
  if (const auto status = parse_command_line(command, arguments)) return *status;
  auto settings = merge_settings(given, environment_value);
  if (!settings) return usage_error(command.name, settings.error().message);
  const model::Role checked = role ? *role : likely_role(settings->config);
  if (const Result<> good = check_settings(*settings, checked); !good) {
    return usage_error(command.name, good.error().message);
  }
  const model::TierConfig& config = settings->config;
  const std::string role_text(model::to_string(checked));
  const char* format = json ? "{{\"good\":true,\"role\":\"{}\",\"racks\":{},\"shards\":{},"
                              "\"spines\":{}}}\n"
                            : "good for role {}: {} racks, {} shards, {} spines\n";
  std::fputs(fmt::format(fmt::runtime(format), role_text, config.racks.size(), shard_count(config),
                         config.spines.size())
                 .c_str(),
             stdout);
  return kExitDone;
}

int run_config_show(const Arguments& arguments) {
  Given given;
  bool origin = false;
  bool json = false;
  CommandLine command{.name = "ballast config show",
                      .summary =
                          "prints the configuration that options, environment, file and "
                          "defaults give together, as a tier.toml",
                      .flags = all_flags(given)};
  command.flags.insert(command.flags.begin(), switch_flag("--json", "as JSON, with origins", json));
  command.flags.insert(command.flags.begin(),
                       switch_flag("--origin", "say where each value came from", origin));
  if (const auto status = parse_command_line(command, arguments)) return *status;
  auto settings = merge_settings(given, environment_value);
  if (!settings) return usage_error(command.name, settings.error().message);
  std::fputs((json ? settings_json(*settings) : settings_toml(*settings, origin)).c_str(), stdout);
  return kExitDone;
}

}  // namespace ballast::app
