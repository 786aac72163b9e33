// SPDX-License-Identifier: Apache-2.0
// Router's INFO: what it knows of itself, and what its shards count, added up over them.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/version.h"
#include "cache/router.h"
#include "cache/words.h"
#include "proto/resp_write.h"

namespace ballast::cache {
namespace {

enum class Merge : uint8_t { kSum, kMax, kFirst };

struct ShardRow {
  std::string_view section;
  std::string_view name;
  Merge merge;
};

// Rows of a shard's INFO that make sense of all shards together.
constexpr ShardRow kShardRows[] = {
    {"clients", "blocked_clients", Merge::kSum},
    {"memory", "used_memory", Merge::kSum},
    {"memory", "used_memory_rss", Merge::kSum},
    {"memory", "used_memory_peak", Merge::kSum},
    {"memory", "used_memory_dataset", Merge::kSum},
    {"memory", "number_of_cached_scripts", Merge::kMax},
    {"memory", "number_of_functions", Merge::kMax},
    {"memory", "number_of_libraries", Merge::kMax},
    {"memory", "maxmemory", Merge::kSum},
    {"memory", "maxmemory_policy", Merge::kFirst},
    {"memory", "mem_allocator", Merge::kFirst},
    {"memory", "lazyfree_pending_objects", Merge::kSum},
    {"memory", "lazyfreed_objects", Merge::kSum},
    {"persistence", "loading", Merge::kMax},
    {"persistence", "rdb_changes_since_last_save", Merge::kSum},
    {"persistence", "rdb_bgsave_in_progress", Merge::kMax},
    {"persistence", "aof_enabled", Merge::kMax},
    {"persistence", "aof_rewrite_in_progress", Merge::kMax},
    {"stats", "expired_keys", Merge::kSum},
    {"stats", "evicted_keys", Merge::kSum},
    {"stats", "keyspace_hits", Merge::kSum},
    {"stats", "keyspace_misses", Merge::kSum},
    {"stats", "pubsub_channels", Merge::kSum},
    {"stats", "pubsub_patterns", Merge::kMax},
};

// Sections whose rows have a common beginning and the form name=number,name=number.
struct ShardRows {
  std::string_view section;
  std::string_view prefix;
};
constexpr ShardRows kShardSections[] = {
    {"commandstats", "cmdstat_"}, {"errorstats", "errorstat_"}, {"keyspace", "db0"}};

int64_t number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Each row of the shards' replies, with its value of every shard that has it.
using Rows = std::map<std::string_view, std::vector<std::string_view>>;

Rows rows_of(const std::vector<std::string>& replies) {
  Rows rows;
  for (const std::string& reply : replies) {
    if (reply.starts_with('-')) continue;  // a shard that is down adds nothing
    std::string_view rest = reply;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find("\r\n"), rest.size());
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 2, rest.size()));
      const size_t colon = line.find(':');
      if (colon != std::string_view::npos && !line.starts_with('#'))
        rows[line.substr(0, colon)].push_back(line.substr(colon + 1));
    }
  }
  return rows;
}

std::string merged(Merge merge, const std::vector<std::string_view>& values) {
  if (merge == Merge::kFirst) return std::string(values[0]);
  int64_t result = number(values[0]);
  for (size_t i = 1; i < values.size(); ++i)
    result =
        merge == Merge::kSum ? result + number(values[i]) : std::max(result, number(values[i]));
  return std::to_string(result);
}

// name=number,… field by field; averages (usec_per_call, avg_ttl) are of the busiest shard.
std::string merged_fields(const std::vector<std::string_view>& values) {
  if (values.size() == 1) return std::string(values[0]);
  std::vector<std::pair<std::string_view, double>> fields;
  for (const std::string_view value : values) {
    std::string_view rest = value;
    for (size_t at = 0; !rest.empty(); ++at) {
      const size_t end = std::min(rest.find(','), rest.size());
      const size_t equals = std::min(rest.find('='), end);
      const std::string_view name = rest.substr(0, equals);
      double part = 0;
      if (equals < end) std::from_chars(rest.data() + equals + 1, rest.data() + end, part);
      if (at == fields.size()) {
        fields.emplace_back(name, part);
      } else {
        const bool average = name == "usec_per_call" || name == "avg_ttl";
        fields[at].second = average ? std::max(fields[at].second, part) : fields[at].second + part;
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  std::string out;
  for (const auto& [name, value] : fields)
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, value);
  return out;
}

bool wanted(std::span<const std::string> sections, std::string_view section) {
  const bool by_default = section != "commandstats";
  if (sections.empty()) return by_default;
  return std::any_of(sections.begin(), sections.end(), [&](const std::string& asked) {
    return asked == section || asked == "all" || asked == "everything" ||
           (by_default && asked == "default");
  });
}

bool needs_shards(std::span<const std::string> sections) {
  const auto asked = [&](const auto& row) { return wanted(sections, row.section); };
  return std::any_of(std::begin(kShardRows), std::end(kShardRows), asked) ||
         std::any_of(std::begin(kShardSections), std::end(kShardSections), asked);
}

template <class Value>
void row(std::string& text, std::string_view name, const Value& value) {
  text += fmt::format("{}:{}\r\n", name, value);
}

}  // namespace

void Router::info_own_rows(std::string& text, std::string_view section) const {
  if (section == "server") {
    row(text, "redis_version", redis_version_);
    row(text, "redis_mode", "standalone");
    row(text, "ballast_version", kVersion);
    row(text, "process_id", getpid());
    row(text, "tcp_port", config_.listen.port);
    row(text, "uptime_in_seconds", (now_ns() - started_) / kSecond);
  } else if (section == "clients") {
    row(text, "connected_clients", clients_.size());
    row(text, "maxclients", config_.max_clients);
  } else if (section == "stats") {
    row(text, "total_connections_received", metrics_.connections);
    row(text, "total_commands_processed", metrics_.commands);
    row(text, "rejected_connections", metrics_.connections_refused);
  } else if (section == "replication") {
    row(text, "role", "master");
    row(text, "connected_slaves", 0);
    row(text, "master_repl_offset", 0);
  } else if (section == "cpu") {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    row(text, "used_cpu_sys",
        fmt::format("{}.{:06}", usage.ru_stime.tv_sec, usage.ru_stime.tv_usec));
    row(text, "used_cpu_user",
        fmt::format("{}.{:06}", usage.ru_utime.tv_sec, usage.ru_utime.tv_usec));
  } else if (section == "cluster") {
    row(text, "cluster_enabled", 0);
  } else if (section == "ballast") {
    row(text, "tier", config_.tier);
    row(text, "mechanism", model::to_string(config_.mechanism));
    row(text, "shards", shards_.size());
    row(text, "shards_ready", std::count_if(shards_.begin(), shards_.end(), [](const auto& shard) {
          return shard->ready();
        }));
    row(text, "cache_nodes", layer_.members().size());
    row(text, "cache_hits", metrics_.hot_reads);
    row(text, "cold_reads", metrics_.cold_reads);
    row(text, "writes", metrics_.writes);
  }
}

std::string Router::info_text(std::span<const std::string> sections,
                              const std::vector<std::string>& replies) const {
  static constexpr std::string_view kTitles[] = {
      "Server", "Clients",      "Memory",     "Persistence", "Stats",    "Replication",
      "CPU",    "Commandstats", "Errorstats", "Cluster",     "Keyspace", "Ballast"};
  const Rows rows = rows_of(replies);
  int64_t errors = static_cast<int64_t>(metrics_.command_errors);
  if (const auto at_shards = rows.find("total_error_replies"); at_shards != rows.end())
    errors += number(merged(Merge::kSum, at_shards->second));
  std::string text;
  for (const std::string_view title : kTitles) {
    const std::string section = lower(title);
    if (!wanted(sections, section)) continue;
    if (!text.empty()) text += "\r\n";
    text += "# " + std::string(title) + "\r\n";
    info_own_rows(text, section);
    for (const ShardRow& one : kShardRows) {
      const auto found = rows.find(one.name);
      if (one.section == section && found != rows.end())
        row(text, one.name, merged(one.merge, found->second));
    }
    for (const ShardRows& one : kShardSections)
      for (const auto& [name, values] : rows)
        if (one.section == section && name.starts_with(one.prefix))
          row(text, name, merged_fields(values));
    if (section == "stats") row(text, "total_error_replies", errors);
  }
  return text;
}

// The shards are asked anew each time, so that a number is never older than the question; one that
// is down adds nothing.
bool Router::info(Call& call) {
  std::vector<std::string> sections;
  for (const std::string_view arg : call.args.subspan(1)) sections.push_back(lower(arg));
  const uint8_t proto = call.client.proto;
  const auto whole = [this, sections, proto](const std::vector<std::string>& replies) {
    std::string out;
    proto::append_verbatim(out, info_text(sections, replies), proto);
    return out;
  };
  if (!needs_shards(sections)) {
    call.client.reply(whole({}));
    return true;
  }
  if (call.client.overtakes(0)) return false;
  const bool all = wanted(sections, "commandstats");
  gather(call, all ? "*2\r\n$4\r\nINFO\r\n$3\r\nall\r\n" : "*1\r\n$4\r\nINFO\r\n", Carrier::kLink,
         whole);
  return true;
}

}  // namespace ballast::cache
