// SPDX-License-Identifier: Apache-2.0
#include "app/toml_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace ballast::app {
namespace {

using nlohmann::json;

json convert(const toml::node& node, const std::string& path, Document& document);

json convert_table(const toml::table& table, const std::string& path, Document& document) {
  json object = json::object();
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const std::string inner = path.empty() ? name : path + "." + name;
    object[name] = convert(node, inner, document);
    document.lines[inner] = key.source().begin.line;
  }
  return object;
}

json convert(const toml::node& node, const std::string& path, Document& document) {
  document.lines[path] = node.source().begin.line;
  if (const toml::table* table = node.as_table()) return convert_table(*table, path, document);
  if (const toml::array* array = node.as_array()) {
    json list = json::array();
    for (size_t i = 0; i < array->size(); ++i)
      list.push_back(convert(*array->get(i), fmt::format("{}[{}]", path, i), document));
    return list;
  }
  if (node.is_boolean()) return *node.value<bool>();
  if (node.is_integer()) return *node.value<int64_t>();
  if (node.is_floating_point()) return *node.value<double>();
  if (node.is_string()) return *node.value<std::string>();
  return nullptr;  // a date
}

}  // namespace

std::string Document::place(const std::string& path) const {
  std::string at = path;
  while (true) {
    if (const auto found = lines.find(at); found != lines.end())
      return fmt::format("{}:{}", name, found->second);
    const size_t cut = at.find_last_of("[.");
    if (cut == std::string::npos) return name;
    at.resize(cut);
  }
}

Result<json> toml_to_json(const std::string& text, Document& document) {
  const toml::parse_result parsed = toml::parse(text, document.name);
  if (!parsed) {
    return fail(ErrorCode::kInvalid,
                fmt::format("{}:{}: {}", document.name, parsed.error().source().begin.line,
                            parsed.error().description()));
  }
  return convert_table(parsed.table(), "", document);
}

}  // namespace ballast::app
