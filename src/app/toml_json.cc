// SPDX-License-Identifier: Apache-2.0
#include "app/toml_json.h"

#include <fmt/format.h>

#include <cctype>

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

// The line of a key of more parts than the parser's stack bears; 0 if there is none.
size_t find_deep_key(const std::string& text) {
  constexpr size_t kMostParts = 256;
  size_t line = 1;
  size_t dots = 0;
  for (const char c : text) {
    if (c == '\n') ++line;
    const bool is_of_key = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
                           c == '-' || c == '.' || c == '"' || c == '\'' || c == ' ' || c == '\t';
    if (!is_of_key) dots = 0;
    if (c == '.' && ++dots > kMostParts) return line;
  }
  return 0;
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
  if (const size_t line = find_deep_key(text); line != 0)
    return fail(ErrorCode::kInvalid,
                fmt::format("{}:{}: a key of too many parts", document.name, line));
  const toml::parse_result parsed = toml::parse(text, document.name);
  if (!parsed) {
    return fail(ErrorCode::kInvalid,
                fmt::format("{}:{}: {}", document.name, parsed.error().source().begin.line,
                            parsed.error().description()));
  }
  return convert_table(parsed.table(), "", document);
}

}  // namespace ballast::app
