// SPDX-License-Identifier: Apache-2.0
// ballast cache status: asks a process's admin address what it and the tier's members do.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "app/options.h"
#include "app/subcommand.h"
#include "telemetry/admin.h"
#include "telemetry/status.h"
#include "telemetry/table.h"

namespace ballast::app {
namespace {

constexpr std::chrono::milliseconds kTimeout{5000};

using telemetry::Status;
using telemetry::Table;

std::string percent(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string shown_bytes(uint64_t bytes) {
  if (bytes < 10 * model::kKiB) return fmt::format("{} B", bytes);
  if (bytes < 10 * model::kMiB) return fmt::format("{} KiB", bytes / model::kKiB);
  return fmt::format("{} MiB", bytes / model::kMiB);
}

std::string status_text(const Status& status) {
  std::string out = fmt::format("tier {}, role {}, {}, up {:.0f} s\n", status.tier, status.role,
                                status.ready ? "ready" : "not ready", status.uptime_seconds);
  out += fmt::format("clients {}, requests {}, writes {}, cold reads {}, hit ratio {:.1f} %\n",
                     status.router.clients, status.router.requests, status.router.writes,
                     status.router.cold_reads, 100.0 * status.router.hit_ratio);
  Table shards({{"shard"}, {"rack"}, {"state"}, {"requests", true}, {"req/s", true}});
  for (const telemetry::ShardStatus& shard : status.shards) {
    shards.add({shard.name, shard.rack, shard.up ? "up" : fmt::format("down: {}", shard.error),
                fmt::format("{}", shard.requests), fmt::format("{:.0f}", shard.rate)});
  }
  if (!shards.empty()) out += "\n" + shards.text();
  Table nodes({{"node"},
               {"layer"},
               {"lease"},
               {"copies", true},
               {"memory", true},
               {"load", true},
               {"requests", true},
               {"hits", true}});
  for (const telemetry::NodeStatus& node : status.nodes) {
    nodes.add({node.name, node.layer, node.lease_ok ? "runs" : "lapsed",
               fmt::format("{}", node.copies), shown_bytes(node.bytes),
               fmt::format("{}", node.load), fmt::format("{}", node.requests),
               percent(node.hits, node.hits + node.misses)});
  }
  if (!nodes.empty()) out += "\n" + nodes.text();
  Table hottest({{"hottest key"}, {"node"}, {"count", true}});
  for (const telemetry::HotKey& hot : status.hottest) {
    hottest.add({hot.key, hot.node, fmt::format("{}", hot.count)});
  }
  if (!hottest.empty()) out += "\n" + hottest.text();
  return out;
}

// The whole table's flags would mislead here: of all options only the admin address counts.
std::vector<Flag> status_flags(Given& given, bool& json) {
  std::vector<Flag> flags = {{.name = "--json", .help = "as JSON", .set = [&](const std::string&) {
                                json = true;
                                return Result<>();
                              }}};
  for (Flag& flag : settings_flags(given, model::Role::kAll)) {
    if (flag.name != "--admin" && flag.name != "-c,--config") continue;
    if (flag.name == "--admin") flag.help = "the admin address of the process to ask";
    flag.group = "";
    flags.push_back(std::move(flag));
  }
  return flags;
}

}  // namespace

int run_cache_status(const Arguments& arguments) {
  Given given;
  bool json = false;
  const CommandLine command{.name = "ballast cache status",
                            .summary =
                                "members, partitions, loads, hit ratio and hottest keys of "
                                "a running tier",
                            .flags = status_flags(given, json)};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  const auto settings = merge_settings(given, [](const char* name) { return std::getenv(name); });
  if (!settings) return usage_error(command.name, settings.error().message);
  const model::Endpoint& admin = settings->config.admin;
  if (admin.host.empty() || admin.port == 0) {
    return usage_error(command.name, "there is no admin address to ask; give --admin H:P");
  }
  const auto body = telemetry::http_get(admin, "/status", kTimeout);
  if (!body) {
    std::fprintf(stderr, "%s: %s\n", command.name.c_str(), body.error().message.c_str());
    return kExitFailed;
  }
  if (json) {
    std::fputs(body->c_str(), stdout);
    return kExitDone;
  }
  const auto status = telemetry::parse_status(*body);
  if (!status) {
    std::fprintf(stderr, "%s: %s: %s\n", command.name.c_str(), model::to_string(admin).c_str(),
                 status.error().message.c_str());
    return kExitFailed;
  }
  std::fputs(status_text(*status).c_str(), stdout);
  return kExitDone;
}

}  // namespace ballast::app
