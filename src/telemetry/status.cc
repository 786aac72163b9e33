// SPDX-License-Identifier: Apache-2.0
#include "telemetry/status.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ballast::telemetry {
namespace {

using Json = nlohmann::ordered_json;

// One list of fields per struct serves both directions: the visitor writes or reads each.
template <typename Visit, typename S>
void visit_shard(Visit&& visit, S& shard) {
  visit("name", shard.name);
  visit("rack", shard.rack);
  visit("up", shard.up);
  visit("requests", shard.requests);
  visit("rate", shard.rate);
  visit("error", shard.error);
}

template <typename Visit, typename S>
void visit_node(Visit&& visit, S& node) {
  visit("name", node.name);
  visit("layer", node.layer);
  visit("copies", node.copies);
  visit("bytes", node.bytes);
  visit("load", node.load);
  visit("requests", node.requests);
  visit("hits", node.hits);
  visit("misses", node.misses);
  visit("lease_ok", node.lease_ok);
}

template <typename Visit, typename S>
void visit_router(Visit&& visit, S& router) {
  visit("clients", router.clients);
  visit("requests", router.requests);
  visit("hit_ratio", router.hit_ratio);
  visit("cold_reads", router.cold_reads);
  visit("writes", router.writes);
}

template <typename Visit, typename S>
void visit_hot_key(Visit&& visit, S& hot) {
  visit("key", hot.key);
  visit("node", hot.node);
  visit("count", hot.count);
}

template <typename Visit, typename S>
void visit_head(Visit&& visit, S& status) {
  visit("tier", status.tier);
  visit("role", status.role);
  visit("uptime_seconds", status.uptime_seconds);
  visit("ready", status.ready);
}

struct Writer {
  Json& object;
  template <typename T>
  void operator()(const char* name, const T& value) {
    object[name] = value;
  }
};

// A field of another type than expected is left at its default.
struct Reader {
  const Json& object;
  void operator()(const char* name, std::string& value) {
    const Json* field = find(name);
    if (field != nullptr && field->is_string()) value = field->get<std::string>();
  }
  void operator()(const char* name, bool& value) {
    const Json* field = find(name);
    if (field != nullptr && field->is_boolean()) value = field->get<bool>();
  }
  void operator()(const char* name, uint64_t& value) {
    const Json* field = find(name);
    if (field != nullptr && field->is_number_unsigned()) value = field->get<uint64_t>();
  }
  void operator()(const char* name, double& value) {
    const Json* field = find(name);
    if (field != nullptr && field->is_number()) value = field->get<double>();
  }
  const Json* find(const char* name) const {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
  }
};

template <typename T, typename Each>
void read_list(const Json& root, const char* name, std::vector<T>& into, Each&& each) {
  const Json* list = Reader{root}.find(name);
  if (list == nullptr || !list->is_array()) return;
  for (const Json& element : *list) each(Reader{element}, into.emplace_back());
}

}  // namespace

std::string printable(std::string_view key) {
  constexpr size_t kMost = 128;
  std::string out;
  for (const char c : key) {
    if (out.size() >= kMost) return out + "...";
    const bool plain = c > ' ' && c < 0x7F && c != '\\';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string to_json(const Status& status) {
  Json root;
  visit_head(Writer{root}, status);
  root["shards"] = Json::array();
  for (const ShardStatus& shard : status.shards) {
    visit_shard(Writer{root["shards"].emplace_back(Json::object())}, shard);
  }
  root["nodes"] = Json::array();
  for (const NodeStatus& node : status.nodes) {
    visit_node(Writer{root["nodes"].emplace_back(Json::object())}, node);
  }
  root["router"] = Json::object();
  visit_router(Writer{root["router"]}, status.router);
  root["hottest"] = Json::array();
  for (const HotKey& hot : status.hottest) {
    const HotKey shown{printable(hot.key), hot.node, hot.count};
    visit_hot_key(Writer{root["hottest"].emplace_back(Json::object())}, shown);
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Status> parse_status(std::string_view json) {
  const Json root = Json::parse(json, nullptr, false);
  if (!root.is_object()) return fail(ErrorCode::kInvalid, "the answer is not a status in JSON");
  Status status;
  visit_head(Reader{root}, status);
  read_list(root, "shards", status.shards, [](Reader r, ShardStatus& s) { visit_shard(r, s); });
  read_list(root, "nodes", status.nodes, [](Reader r, NodeStatus& n) { visit_node(r, n); });
  if (const Json* router = Reader{root}.find("router"); router != nullptr) {
    visit_router(Reader{*router}, status.router);
  }
  read_list(root, "hottest", status.hottest, [](Reader r, HotKey& k) { visit_hot_key(r, k); });
  return status;
}

}  // namespace ballast::telemetry
