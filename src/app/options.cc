// SPDX-License-Identifier: Apache-2.0
#include "app/options.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/read_file.h"

namespace ballast::app {
namespace {

bool in_role(const Option& option, model::Role role) {
  const bool node = role == model::Role::kLeaf || role == model::Role::kSpine;
  if (option.key == "rack" || option.key == "spines") return role == model::Role::kAll;
  if (option.key == "name") return node;
  if (option.key == "listen") return !node;
  return true;
}

Result<> apply(Settings& settings, const Option& option, const std::string& value, Origin origin) {
  if (const Result<> set = option.set(settings.config, value); !set) {
    return fail(ErrorCode::kInvalid, fmt::format("{}: {}", origin.text, set.error().message));
  }
  // A whole list replaces what a file's tables said.
  const std::string table = option.key == "spines" ? "spine" : option.key;
  std::erase_if(settings.origins, [&](const auto& entry) {
    return entry.first == table || entry.first.starts_with(table + "[");
  });
  settings.origins[option.key] = std::move(origin);
  return {};
}

std::string joined(const std::vector<std::string>& values, bool all) {
  if (!all) return values.back();
  std::string out;
  for (const std::string& value : values) out += (out.empty() ? "" : ";") + value;
  return out;
}

Result<std::string> read_secret(const std::string& path) {
  auto text = read_file(path);
  if (!text) return fail(ErrorCode::kInvalid, fmt::format("\"{}\" {}", path, text.error().message));
  if (!text->empty() && text->back() == '\n') text->pop_back();
  if (!text->empty() && text->back() == '\r') text->pop_back();
  if (text->empty()) {
    return fail(ErrorCode::kInvalid,
                fmt::format("\"{}\" is empty; it must hold the password in one line", path));
  }
  return text;
}

// How a message about this key begins.
std::string place(const Settings& settings, const std::string& key) {
  const Origin& origin = settings.origin(key);
  const std::string inside = key.find('[') == std::string::npos ? "" : fmt::format("{}: ", key);
  switch (origin.source) {
    case Source::kFile:
      return fmt::format("{}: {}: ", origin.text, key);
    case Source::kEnvironment:
    case Source::kOption:
      return fmt::format("{}: {}", origin.text, inside);
    case Source::kDefault:
      break;
  }
  if (!settings.file.empty()) return fmt::format("{}: {}: ", settings.file, key);
  const Option* option = find_option(key);
  return fmt::format("{}: ", option != nullptr && !option->secret ? option->flag() : key);
}

// The password from the variable or the file, whichever was given with more weight.
Result<> settle_secret(Settings& settings, const std::string& key, std::string& secret,
                       const std::string& path) {
  const std::string file_key = key + "_file";
  if (path.empty()) return {};
  if (!secret.empty() && settings.origin(key).source >= settings.origin(file_key).source) return {};
  auto text = read_secret(path);
  if (!text) {
    return fail(ErrorCode::kInvalid, place(settings, file_key) + text.error().message);
  }
  secret = *text;
  settings.origins[key] = settings.origin(file_key);
  return {};
}

Result<> check_readable(const Settings& settings, const std::string& key, const std::string& path) {
  if (path.empty()) return {};
  const auto text = read_file(path);
  if (text && !text->empty()) return {};
  return fail(ErrorCode::kInvalid, fmt::format("{}\"{}\" {}", place(settings, key), path,
                                               text ? "is empty" : text.error().message));
}

bool is_quoted(const Option& option) {
  return option.form == Form::kText || option.form == Form::kBytes;
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

std::string comment(const Settings& settings, const std::string& key, bool with_origin) {
  return with_origin ? fmt::format("  # {}", settings.origin(key).text) : "";
}

std::string members_toml(const Settings& settings, bool with_origin) {
  std::string out;
  for (size_t i = 0; i < settings.config.racks.size(); ++i) {
    const model::Rack& rack = settings.config.racks[i];
    const std::string key = fmt::format("rack[{}]", i);
    std::string shards;
    for (const model::Endpoint& shard : rack.shards) {
      shards += (shards.empty() ? "" : ", ") + quoted(model::to_string(shard));
    }
    out += fmt::format("\n[[rack]]{}\nname = {}\nshards = [{}]\n",
                       comment(settings, key, with_origin), quoted(rack.name), shards);
    if (!rack.leaf.host.empty()) {
      out += fmt::format("leaf = {}\n", quoted(model::to_string(rack.leaf)));
    }
  }
  for (size_t i = 0; i < settings.config.spines.size(); ++i) {
    const model::Spine& spine = settings.config.spines[i];
    if (spine.address.host.empty()) continue;
    out += fmt::format("\n[[spine]]{}\nname = {}\naddress = {}\n",
                       comment(settings, fmt::format("spine[{}]", i), with_origin),
                       quoted(spine.name), quoted(model::to_string(spine.address)));
  }
  return out;
}

bool has_spine_tables(const model::TierConfig& config) {
  for (const model::Spine& spine : config.spines) {
    if (!spine.address.host.empty()) return true;
  }
  return false;
}

}  // namespace

const Origin& Settings::origin(const std::string& key) const {
  static const Origin kNone;
  std::string at = key;
  while (true) {
    if (const auto found = origins.find(at); found != origins.end()) return found->second;
    const size_t cut = at.find_last_of("[.");
    if (cut == std::string::npos) return kNone;
    at.resize(cut);
  }
}

std::vector<Flag> settings_flags(Given& given, model::Role role) {
  std::vector<Flag> flags;
  flags.push_back({.name = "-c,--config",
                   .value = "FILE",
                   .help = "tier.toml to read; also BALLAST_CONFIG",
                   .set = [&given](const std::string& text) -> Result<> {
                     given.file = text;
                     return {};
                   }});
  static const model::TierConfig defaults;
  for (const Option& option : cache_options()) {
    if (option.secret || !in_role(option, role)) continue;
    const std::string shown = option.key == "spines" ? "one for each rack" : option.get(defaults);
    flags.push_back({.name = option.flag(),
                     .value = option.value,
                     .help = option.help,
                     .default_text = shown,
                     .group = option.group,
                     .repeated = option.key == "rack",
                     .set = [&given, key = option.key](const std::string& text) -> Result<> {
                       given.options[key].push_back(text);
                       return {};
                     }});
  }
  return flags;
}

Result<Settings> merge_settings(const Given& given, const Environment& environment) {
  Settings settings;
  settings.file = given.file;
  if (settings.file.empty()) {
    if (const char* file = environment("BALLAST_CONFIG"); file != nullptr) settings.file = file;
  }
  if (!settings.file.empty()) {
    if (const Result<> read = apply_file(settings.file, settings); !read) {
      return Unexpected(read.error());
    }
  }
  for (const Option& option : cache_options()) {
    const std::string name = option.environment();
    const char* value = environment(name.c_str());
    if (value == nullptr || *value == '\0') continue;
    if (const Result<> set = apply(settings, option, value, {Source::kEnvironment, name}); !set) {
      return Unexpected(set.error());
    }
  }
  for (const auto& [key, values] : given.options) {
    const Option* option = find_option(key);
    const Result<> set =
        apply(settings, *option, joined(values, key == "rack"), {Source::kOption, option->flag()});
    if (!set) return Unexpected(set.error());
  }
  if (!settings.origins.contains("spines") && settings.config.spines.empty()) {
    settings.config.spines = model::numbered_spines(settings.config.racks.size());
  }
  return settings;
}

Result<> check_settings(Settings& settings, model::Role role) {
  model::TierConfig& config = settings.config;
  if (const auto problem = model::find_problem(config, role)) {
    return fail(ErrorCode::kInvalid, place(settings, problem->key) + problem->message);
  }
  if (const Result<> settled =
          settle_secret(settings, "password", config.password, config.password_file);
      !settled) {
    return settled;
  }
  if (const Result<> settled = settle_secret(settings, "shard_password", config.shard_password,
                                             config.shard_password_file);
      !settled) {
    return settled;
  }
  if (!config.tls) return {};
  const std::pair<const char*, std::string> files[] = {{"tls_cert", config.tls->cert_file},
                                                       {"tls_key", config.tls->key_file},
                                                       {"tls_ca", config.tls->ca_file}};
  for (const auto& [key, path] : files) {
    if (const Result<> good = check_readable(settings, key, path); !good) return good;
  }
  return {};
}

Result<Settings> load_settings(const Given& given, model::Role role,
                               const Environment& environment) {
  auto settings = merge_settings(given, environment);
  if (!settings) return settings;
  if (const Result<> good = check_settings(*settings, role); !good) {
    return Unexpected(good.error());
  }
  return settings;
}

Result<Settings> load_settings(const Given& given, model::Role role) {
  return load_settings(given, role, [](const char* name) { return std::getenv(name); });
}

std::string settings_toml(const Settings& settings, bool with_origin) {
  std::string out;
  for (const Option& option : cache_options()) {
    if (!option.in_file) continue;
    if (option.key == "spines" && has_spine_tables(settings.config)) continue;
    const std::string value = option.get(settings.config);
    if (value.empty()) continue;
    out += fmt::format("{} = {}{}\n", option.key, is_quoted(option) ? quoted(value) : value,
                       comment(settings, option.key, with_origin));
  }
  for (const char* key : {"password", "shard_password"}) {
    if (find_option(key)->get(settings.config).empty()) continue;
    out += fmt::format("# {} is set by {}\n", key, settings.origin(key).text);
  }
  return out + members_toml(settings, with_origin);
}

std::string settings_json(const Settings& settings) {
  nlohmann::ordered_json out;
  const auto entry = [&](const std::string& key, nlohmann::ordered_json value) {
    out[key] = {{"value", std::move(value)}, {"origin", settings.origin(key).text}};
  };
  for (const Option& option : cache_options()) {
    if (!option.in_file || option.key == "spines") continue;
    const std::string value = option.get(settings.config);
    entry(option.key,
          is_quoted(option) ? nlohmann::ordered_json(value) : nlohmann::ordered_json::parse(value));
  }
  auto racks = nlohmann::ordered_json::array();
  for (const model::Rack& rack : settings.config.racks) {
    auto shards = nlohmann::ordered_json::array();
    for (const model::Endpoint& shard : rack.shards) shards.push_back(model::to_string(shard));
    racks.push_back(
        {{"name", rack.name}, {"shards", shards}, {"leaf", model::to_string(rack.leaf)}});
  }
  entry("rack", racks);
  auto spines = nlohmann::ordered_json::array();
  for (const model::Spine& spine : settings.config.spines) {
    spines.push_back({{"name", spine.name}, {"address", model::to_string(spine.address)}});
  }
  entry(settings.origins.contains("spines") ? "spines" : "spine", spines);
  return out.dump(2) + "\n";
}

}  // namespace ballast::app
