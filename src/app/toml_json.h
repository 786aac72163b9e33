// SPDX-License-Identifier: Apache-2.0
// A TOML document as JSON, with the line of each key, so that one reader serves both. Knows toml++.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

namespace ballast::app {

struct Document {
  std::string name;                     // of the file
  std::map<std::string, size_t> lines;  // by path, "vip[0].instance[1].address"; JSON has none

  // "lb.toml:12" or the name alone; of a path that is not there, the line of what it stands in.
  std::string place(const std::string& path) const;
};

// kInvalid names file and line.
Result<nlohmann::json> toml_to_json(const std::string& text, Document& document);

}  // namespace ballast::app
