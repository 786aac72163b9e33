// SPDX-License-Identifier: Apache-2.0
// Where the cache tier's configuration comes from: options over environment over tier.toml over
// defaults, remembering for each key which of them it was.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/command_line.h"
#include "app/option_table.h"
#include "base/result.h"
#include "model/tier.h"

namespace ballast::app {

enum class Source { kDefault, kFile, kEnvironment, kOption };

struct Origin {
  Source source = Source::kDefault;
  std::string text = "default";  // "tier.toml:12", "BALLAST_SAMPLE", "--sample"
};

struct Settings {
  model::TierConfig config;
  std::string file;  // empty = none was read
  // By key as model::Problem spells it; a key not in here has its default.
  std::map<std::string, Origin> origins;

  const Origin& origin(const std::string& key) const;  // of the key or of the table it stands in
};

// What a command line gave, kept so that a reload can apply it again over a changed file.
struct Given {
  std::string file;
  std::map<std::string, std::vector<std::string>> options;  // key -> values as given
};

// The flags of a command that runs in this role; they write into `given`, which must outlive them.
std::vector<Flag> settings_flags(Given& given, model::Role role);

using Environment = std::function<const char*(const char* name)>;  // getenv, or a test's

// Everything merged and checked for `role`, password files read. The error is one sentence that
// names file, line and key, or the variable, or the option.
Result<Settings> load_settings(const Given& given, model::Role role,
                               const Environment& environment);
Result<Settings> load_settings(const Given& given, model::Role role);  // with getenv

// Merged, not checked: what `config show` prints also of a configuration that cannot run.
Result<Settings> merge_settings(const Given& given, const Environment& environment);
Result<> check_settings(Settings& settings, model::Role role);

// As a tier.toml that gives the same configuration, without secrets; each line's origin as a
// comment if wanted.
std::string settings_toml(const Settings& settings, bool with_origin);
std::string settings_json(const Settings& settings);

// Reads tier.toml into settings (config_file.cc, the only place that knows toml++).
Result<> apply_file(const std::string& path, Settings& settings);

}  // namespace ballast::app
