// SPDX-License-Identifier: Apache-2.0
#include "proto/json_number.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>

namespace ballast::proto {
namespace {

using Json = nlohmann::json;

const Json* child(const Json& parent, std::string_view name) {
  if (parent.is_object()) {
    const auto found = parent.find(std::string(name));
    return found == parent.end() ? nullptr : &*found;
  }
  size_t at = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), at);
  const bool is_position = error == std::errc() && stop == name.data() + name.size();
  return parent.is_array() && is_position && at < parent.size() ? &parent[at] : nullptr;
}

}  // namespace

Result<double> find_json_number(std::string_view document, std::string_view path) {
  const Json root = Json::parse(document.begin(), document.end(), nullptr, false);
  if (root.is_discarded()) return fail(ErrorCode::kInvalid, "no JSON");
  const Json* value = &root;
  std::string_view rest = path;
  while (value != nullptr && !rest.empty()) {
    const size_t size = std::min(rest.find('.'), rest.size());
    value = child(*value, rest.substr(0, size));
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
  const std::string name = path.empty() ? "the document" : std::string(path);
  if (value == nullptr) return fail(ErrorCode::kInvalid, name + " is not in the document");
  if (!value->is_number()) return fail(ErrorCode::kInvalid, name + " is no number");
  return value->get<double>();
}

}  // namespace ballast::proto
