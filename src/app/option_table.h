// SPDX-License-Identifier: Apache-2.0
// The one table of the cache tier's options. Flag, environment variable, tier.toml key, --help and
// docs/reference/cache.md all come from it; defaults come from model::TierConfig's initialisers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/tier.h"

namespace ballast::app {

// How tier.toml writes the value; bytes may be a string with a unit or a plain number.
enum class Form { kText, kNumber, kBytes, kSwitch };

struct Option {
  std::string key = {};    // tier.toml's key; the flag and the variable's name follow from it
  std::string value = {};  // what --help calls the value
  Form form = Form::kText;
  std::string group = {};
  std::string help = {};
  bool secret = false;  // by environment only, never shown
  bool in_file = true;  // false: tier.toml has tables for it instead
  Result<> (*set)(model::TierConfig&, std::string_view text) = nullptr;
  std::string (*get)(const model::TierConfig&) = nullptr;

  std::string flag() const;         // "--cache-memory"
  std::string environment() const;  // "BALLAST_CACHE_MEMORY"
};

const std::vector<Option>& cache_options();
const Option* find_option(std::string_view key);

// docs/reference/cache.md.
std::string reference_page();

}  // namespace ballast::app
