// SPDX-License-Identifier: Apache-2.0
// Values of a JSON answer as cells of a table.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

namespace ballast::app {

// What is not there, or null, is "-".
inline std::string text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || found->is_null()) return "-";
  if (found->is_string()) return found->get<std::string>();
  return found->is_number_float() ? fmt::format("{:.3g}", found->get<double>()) : found->dump();
}

}  // namespace ballast::app
