// SPDX-License-Identifier: Apache-2.0
// tier.toml: every key is an option of the table, or a field of [[rack]] and [[spine]]; what is
// wrong is said with its line.
#include <fmt/format.h>

#include <algorithm>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "app/options.h"
#include "app/read_file.h"
#include "base/units.h"

namespace ballast::app {
namespace {

struct Entry {
  std::string key;
  const toml::node* node;
  toml::source_index line;
};

// A table's entries in the file's order, so that the first mistake is the one reported.
std::vector<Entry> entries_of(const toml::table& table) {
  std::vector<Entry> entries;
  for (const auto& [key, node] : table) {
    entries.push_back({std::string(key.str()), &node, key.source().begin.line});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.line < b.line; });
  return entries;
}

class FileReader {
 public:
  FileReader(const std::string& path, Settings& settings) : path_(path), settings_(settings) {}

  Result<> read(const toml::table& root) {
    for (const Entry& entry : entries_of(root)) {
      Result<> done;
      if (entry.key == "cache") {
        done = read_cache(entry);
      } else if (entry.key == "rack") {
        done = read_members(entry, {"name", "shards", "leaf"}, &FileReader::read_rack);
      } else if (entry.key == "spine") {
        done = read_members(entry, {"name", "address"}, &FileReader::read_spine);
      } else {
        done = read_option(entry, true);
      }
      if (!done) return done;
    }
    return {};
  }

 private:
  using ReadMember = Result<> (FileReader::*)(const std::string& key, const toml::table& table);

  Unexpected wrong(toml::source_index line, const std::string& key,
                   const std::string& message) const {
    return fail(ErrorCode::kInvalid, fmt::format("{}:{}: {}: {}", path_, line, key, message));
  }

  Origin origin(toml::source_index line) const {
    return {Source::kFile, fmt::format("{}:{}", path_, line)};
  }

  Unexpected unknown(const Entry& entry, const std::string& shown,
                     const std::vector<std::string>& known) const {
    const std::string near = nearest(entry.key, known);
    return wrong(entry.line, shown,
                 near.empty() ? "unknown key" : fmt::format("unknown key; did you mean {}?", near));
  }

  Result<> read_cache(const Entry& entry) {
    const toml::table* table = entry.node->as_table();
    if (table == nullptr) return wrong(entry.line, "cache", "must be a table; write [cache]");
    for (const Entry& inner : entries_of(*table)) {
      if (const Result<> done = read_option(inner, false); !done) return done;
    }
    return {};
  }

  Result<> read_option(const Entry& entry, bool top) {
    const Option* option = find_option(entry.key);
    if (option != nullptr && option->secret) {
      return wrong(entry.line, entry.key,
                   fmt::format("a password does not stand here; name the file that holds it by "
                               "{}_file, or set {}",
                               option->key, option->environment()));
    }
    if (option == nullptr || !option->in_file) {
      std::vector<std::string> known;
      if (top) known = {"cache", "rack", "spine"};
      for (const Option& each : cache_options()) {
        if (each.in_file) known.push_back(each.key);
      }
      return unknown(entry, entry.key, known);
    }
    if (settings_.origins.contains(entry.key)) {
      return wrong(entry.line, entry.key,
                   fmt::format("given a second time; it stands at {} too",
                               settings_.origin(entry.key).text));
    }
    auto text = value_text(*option, entry);
    if (!text) return Unexpected(text.error());
    if (entry.key == "spines" && settings_.origins.contains("spine")) return both_spines(entry);
    if (const Result<> set = option->set(settings_.config, *text); !set) {
      return wrong(entry.line, entry.key, set.error().message);
    }
    settings_.origins[entry.key] = origin(entry.line);
    return {};
  }

  Unexpected both_spines(const Entry& entry) const {
    return wrong(entry.line, entry.key, "give either spines = COUNT or [[spine]] tables, not both");
  }

  Result<std::string> value_text(const Option& option, const Entry& entry) const {
    const toml::node& node = *entry.node;
    switch (option.form) {
      case Form::kSwitch:
        if (node.is_boolean()) return std::string(*node.value<bool>() ? "true" : "false");
        return wrong(entry.line, entry.key, "must be true or false, without quotes");
      case Form::kNumber:
        if (node.is_integer()) return fmt::format("{}", *node.value<int64_t>());
        if (node.is_floating_point()) return fmt::format("{}", *node.value<double>());
        return wrong(entry.line, entry.key, "must be a number, without quotes");
      case Form::kBytes:
        if (node.is_integer()) return fmt::format("{}", *node.value<int64_t>());
        if (node.is_string()) return *node.value<std::string>();
        return wrong(entry.line, entry.key, "must be a size, e.g. 65536 or \"64MiB\"");
      case Form::kText:
        if (node.is_string()) return *node.value<std::string>();
        return wrong(entry.line, entry.key,
                     option.value == "TIME" ? "must be a duration in quotes, e.g. \"300ms\""
                                            : "must be a string in quotes");
    }
    return wrong(entry.line, entry.key, "cannot be read");
  }

  // [[rack]] and [[spine]]: every table's keys are checked and remembered, then read_member reads.
  Result<> read_members(const Entry& entry, const std::vector<std::string>& known,
                        ReadMember read_member) {
    if (entry.key == "spine" && settings_.origins.contains("spines")) return both_spines(entry);
    const toml::array* tables = entry.node->as_array();
    const auto shape =
        fmt::format("must be tables; write [[{}]] and below it name and the rest", entry.key);
    if (tables == nullptr) return wrong(entry.line, entry.key, shape);
    settings_.origins[entry.key] = origin(entry.line);
    for (size_t i = 0; i < tables->size(); ++i) {
      const std::string key = fmt::format("{}[{}]", entry.key, i);
      const toml::table* table = tables->get(i)->as_table();
      if (table == nullptr) return wrong(entry.line, key, shape);
      settings_.origins[key] = origin(table->source().begin.line);
      for (const Entry& inner : entries_of(*table)) {
        const std::string path = key + "." + inner.key;
        if (std::find(known.begin(), known.end(), inner.key) == known.end()) {
          return unknown(inner, path, known);
        }
        settings_.origins[path] = origin(inner.line);
      }
      if (const Result<> done = (this->*read_member)(key, *table); !done) return done;
    }
    return {};
  }

  Result<> read_text(const toml::table& table, const char* name, const std::string& key,
                     std::string& into) const {
    const toml::node* node = table.get(name);
    if (node == nullptr) return {};
    if (!node->is_string()) {
      return wrong(node->source().begin.line, key + "." + name, "must be a string in quotes");
    }
    into = *node->value<std::string>();
    return {};
  }

  Result<> read_endpoint(const toml::node& node, const std::string& key,
                         model::Endpoint& into) const {
    const toml::source_index line = node.source().begin.line;
    if (!node.is_string()) return wrong(line, key, "must be \"host:port\" in quotes");
    auto parsed = model::parse_endpoint(*node.value<std::string>());
    if (!parsed) return wrong(line, key, parsed.error().message);
    into = *parsed;
    return {};
  }

  Result<> read_rack(const std::string& key, const toml::table& table) {
    model::Rack rack;
    rack.name = fmt::format("rack-{}", settings_.config.racks.size());
    if (const Result<> done = read_text(table, "name", key, rack.name); !done) return done;
    if (const toml::node* shards = table.get("shards"); shards != nullptr) {
      const toml::array* list = shards->as_array();
      if (list == nullptr) {
        return wrong(shards->source().begin.line, key + ".shards",
                     "must be a list, e.g. [\"10.0.0.1:6379\", \"10.0.0.2:6379\"]");
      }
      for (const toml::node& node : *list) {
        const Result<> done = read_endpoint(node, key + ".shards", rack.shards.emplace_back());
        if (!done) return done;
      }
    }
    if (const toml::node* leaf = table.get("leaf"); leaf != nullptr) {
      if (const Result<> done = read_endpoint(*leaf, key + ".leaf", rack.leaf); !done) return done;
    }
    settings_.config.racks.push_back(std::move(rack));
    return {};
  }

  Result<> read_spine(const std::string& key, const toml::table& table) {
    model::Spine spine;
    spine.name = fmt::format("spine-{}", settings_.config.spines.size());
    if (const Result<> done = read_text(table, "name", key, spine.name); !done) return done;
    if (const toml::node* address = table.get("address"); address != nullptr) {
      const Result<> done = read_endpoint(*address, key + ".address", spine.address);
      if (!done) return done;
    }
    settings_.config.spines.push_back(std::move(spine));
    return {};
  }

  const std::string& path_;
  Settings& settings_;
};

}  // namespace

Result<> apply_file(const std::string& path, Settings& settings) {
  const auto text = read_file(path);
  if (!text) {
    return fail(ErrorCode::kInvalid, fmt::format("{}: {}", path, text.error().message));
  }
  const toml::parse_result parsed = toml::parse(std::string_view(*text), path);
  if (!parsed) {
    return fail(ErrorCode::kInvalid,
                fmt::format("{}:{}: {}", path, parsed.error().source().begin.line,
                            parsed.error().description()));
  }
  return FileReader(path, settings).read(parsed.table());
}

}  // namespace ballast::app
