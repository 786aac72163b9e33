// SPDX-License-Identifier: Apache-2.0
// Reads the rows of COMMAND and finds commands by a hash of their lower-case name.
#include "proto/command_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

namespace ballast::proto {

namespace {

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
}

bool equal_lower(std::string_view lower_case, std::string_view text) {
  return lower_case.size() == text.size() &&
         std::equal(text.begin(), text.end(), lower_case.begin(),
                    [](char a, char b) { return lower(a) == b; });
}

constexpr uint32_t kHashSeed = 2166136261u;  // FNV-1a

uint32_t hash_lower(uint32_t hash, std::string_view text) {
  for (char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(lower(letter))) * 16777619u;
  }
  return hash;
}

constexpr auto kFlagNames = std::to_array<std::pair<std::string_view, uint32_t>>({
    {"write", kWrite},
    {"readonly", kReadonly},
    {"blocking", kBlocking},
    {"pubsub", kPubsub},
    {"noscript", kNoscript},
    {"admin", kAdmin},
    {"movablekeys", kMovablekeys},
    {"may_replicate", kMayReplicate},
    {"no_auth", kNoAuth},
    {"no_multi", kNoMulti},
    {"no-multi", kNoMulti},
    {"fast", kFast},
    {"denyoom", kDenyoom},
    {"module", kModule},
    {"no_mandatory_keys", kNoMandatoryKeys},
    {"allow_busy", kAllowBusy},
    {"random", kNondeterministic},
    {"nondeterministic_output", kNondeterministic},
    {"nondeterministic_output_order", kNondeterministicOrder},
    {"sort_for_script", kNondeterministicOrder},
});

constexpr auto kRequestNames = std::to_array<std::pair<std::string_view, RequestPolicy>>({
    {"all_nodes", RequestPolicy::kAllNodes},
    {"all_shards", RequestPolicy::kAllShards},
    {"multi_shard", RequestPolicy::kMultiShard},
});

constexpr auto kResponseNames = std::to_array<std::pair<std::string_view, ResponsePolicy>>({
    {"one_succeeded", ResponsePolicy::kOneSucceeded},
    {"all_succeeded", ResponsePolicy::kAllSucceeded},
    {"agg_logical_and", ResponsePolicy::kAggLogicalAnd},
    {"agg_logical_or", ResponsePolicy::kAggLogicalOr},
    {"agg_min", ResponsePolicy::kAggMin},
    {"agg_max", ResponsePolicy::kAggMax},
    {"agg_sum", ResponsePolicy::kAggSum},
});

// What a name stands for in one of the tables above, else `otherwise`.
template <typename Table, typename T>
T named(const Table& table, std::string_view name, T otherwise) {
  for (const auto& [known, meaning] : table) {
    if (known == name) return meaning;
  }
  return otherwise;
}

void add_flags(CommandInfo& info, const Value& names) {
  for (const Value& name : names.children) {
    info.flags |= named(kFlagNames, name.string, 0u);
  }
}

void add_tips(CommandInfo& info, const Value& tips) {
  constexpr std::string_view kRequest = "request_policy:";
  constexpr std::string_view kResponse = "response_policy:";
  add_flags(info, tips);
  for (const Value& tip : tips.children) {
    const std::string_view text = tip.string;
    if (text.starts_with(kRequest)) {
      info.request_policy =
          named(kRequestNames, text.substr(kRequest.size()), RequestPolicy::kSpecial);
    } else if (text.starts_with(kResponse)) {
      info.response_policy =
          named(kResponseNames, text.substr(kResponse.size()), ResponsePolicy::kSpecial);
    }
  }
}

// The value under `name` in a map, which in RESP2 is an array of names and values.
const Value& field(const Value& map, std::string_view name) {
  static const Value none;
  for (size_t i = 0; i + 1 < map.children.size(); i += 2) {
    if (map.children[i].string == name) return map.children[i + 1];
  }
  return none;
}

KeySpec read_spec(const Value& value) {
  KeySpec spec;
  for (const Value& flag : field(value, "flags").children) {
    constexpr std::array<std::string_view, 6> kWritten = {"RW",     "OW",     "RM",
                                                          "insert", "delete", "update"};
    if (std::find(kWritten.begin(), kWritten.end(), flag.string) != kWritten.end()) {
      spec.written = true;
    }
    if (flag.string == "incomplete") spec.incomplete = true;
    if (flag.string == "not_key") spec.not_key = true;
    if (flag.string == "variable_flags") spec.variable_flags = true;
  }
  const Value& begin = field(value, "begin_search");
  const Value& begin_spec = field(begin, "spec");
  if (field(begin, "type").string == "index") {
    spec.begin = KeySpec::Begin::kIndex;
    spec.index = field(begin_spec, "index").integer;
  } else if (field(begin, "type").string == "keyword") {
    spec.begin = KeySpec::Begin::kKeyword;
    spec.keyword = field(begin_spec, "keyword").string;
    std::transform(spec.keyword.begin(), spec.keyword.end(), spec.keyword.begin(), lower);
    spec.index = field(begin_spec, "startfrom").integer;
  }
  const Value& find = field(value, "find_keys");
  const Value& find_spec = field(find, "spec");
  spec.key_step = field(find_spec, "keystep").integer;
  if (field(find, "type").string == "range") {
    spec.find = KeySpec::Find::kRange;
    spec.last_key = field(find_spec, "lastkey").integer;
    spec.limit = field(find_spec, "limit").integer;
  } else if (field(find, "type").string == "keynum") {
    spec.find = KeySpec::Find::kKeynum;
    spec.count_at = field(find_spec, "keynumidx").integer;
    spec.first_key = field(find_spec, "firstkey").integer;
  }
  return spec;
}

// One row and those of its subcommands. Nesting is one level on every server; two are taken.
bool read_row(const Value& row, std::string_view parent, std::vector<CommandInfo>& commands) {
  const std::vector<Value>& columns = row.children;
  if (columns.size() < 6 || columns[0].string.empty() || columns[1].type != ':') return false;
  CommandInfo info;
  info.name = columns[0].string;
  std::transform(info.name.begin(), info.name.end(), info.name.begin(), lower);
  if (!parent.empty() && info.name.find('|') == std::string::npos) {
    info.name = std::string(parent) + "|" + info.name;
  }
  info.arity = columns[1].integer;
  add_flags(info, columns[2]);
  info.first_key = columns[3].integer;
  info.last_key = columns[4].integer;
  info.key_step = columns[5].integer;
  if (columns.size() > 7) add_tips(info, columns[7]);
  if (columns.size() > 8) {
    info.has_specs = true;
    for (const Value& spec : columns[8].children) info.specs.push_back(read_spec(spec));
  }
  const Value* subcommands = columns.size() > 9 ? &columns[9] : nullptr;
  info.container = subcommands != nullptr && !subcommands->children.empty();
  const std::string name = info.name;
  commands.push_back(std::move(info));
  if (subcommands == nullptr) return true;
  return std::all_of(
      subcommands->children.begin(), subcommands->children.end(),
      [&](const Value& sub) { return parent.empty() && read_row(sub, name, commands); });
}

}  // namespace

Result<CommandTable> CommandTable::from_reply(const Value& reply) {
  CommandTable table;
  if (reply.type != '*' || reply.children.empty()) {
    return fail(ErrorCode::kInvalid,
                reply.is_error() ? "COMMAND failed: " + reply.string : "COMMAND gave no commands");
  }
  for (const Value& row : reply.children) {
    if (row.null) continue;
    if (!read_row(row, {}, table.commands_)) {
      return fail(ErrorCode::kInvalid, "COMMAND gave a row that is not a command's");
    }
  }
  table.build_index();
  return table;
}

Result<CommandTable> CommandTable::from_reply(std::string_view reply) {
  Result<Value> value = parse_value(reply);
  if (!value) return Unexpected(std::move(value.error()));
  return from_reply(*value);
}

void CommandTable::build_index() {
  index_.assign(std::bit_ceil(commands_.size() * 2 + 1), 0);
  for (size_t i = 0; i < commands_.size(); ++i) {
    size_t at = hash_lower(kHashSeed, commands_[i].name) & (index_.size() - 1);
    while (index_[at] != 0) at = (at + 1) & (index_.size() - 1);
    index_[at] = static_cast<uint32_t>(i + 1);
  }
}

const CommandInfo* CommandTable::find_joined(std::string_view name,
                                             std::string_view subcommand) const {
  if (index_.empty()) return nullptr;
  uint32_t hash = hash_lower(kHashSeed, name);
  if (!subcommand.empty()) hash = hash_lower(hash_lower(hash, "|"), subcommand);
  const size_t mask = index_.size() - 1;
  for (size_t at = hash & mask; index_[at] != 0; at = (at + 1) & mask) {
    const CommandInfo& info = commands_[index_[at] - 1];
    const std::string_view full = info.name;
    if (subcommand.empty()) {
      if (equal_lower(full, name)) return &info;
    } else if (full.size() == name.size() + 1 + subcommand.size() && full[name.size()] == '|' &&
               equal_lower(full.substr(0, name.size()), name) &&
               equal_lower(full.substr(name.size() + 1), subcommand)) {
      return &info;
    }
  }
  return nullptr;
}

const CommandInfo* CommandTable::find(std::span<const std::string_view> args) const {
  // "xgroup|create" as a command's name is not one.
  if (args.empty() || args[0].find('|') != std::string_view::npos) return nullptr;
  const CommandInfo* info = find(args[0]);
  if (info == nullptr || !info->container || args.size() < 2) return info;
  const CommandInfo* subcommand = args[1].empty() ? nullptr : find_joined(args[0], args[1]);
  return subcommand != nullptr ? subcommand : info;
}

}  // namespace ballast::proto
