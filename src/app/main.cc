// SPDX-License-Identifier: Apache-2.0
// The program `ballast`: finds the subcommand by its words and runs it.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/lb_config.h"
#include "app/option_table.h"
#include "app/subcommand.h"
#include "base/units.h"
#include "lb/metrics.h"
#include "telemetry/metrics.h"

namespace ballast::app {
namespace {

int run_help(const Arguments& arguments);

constexpr Subcommand kSubcommands[] = {
    {"bench", "load a Redis-protocol server, measure it, check what it answers", run_bench},
    {"cache up", "the whole cache tier in one process, in front of Redis shards", run_cache_up},
    {"cache router", "one router, of a tier of separate processes", run_cache_router},
    {"cache leaf", "one rack's leaf, home of its shards' objects", run_cache_leaf},
    {"cache spine", "one spine", run_cache_spine},
    {"cache status", "members, partitions, loads, hit ratio, hottest keys", run_cache_status},
    {"config check", "is a configuration good?", run_config_check},
    {"config show", "the configuration as it would be used, and where each value is from",
     run_config_show},
    {"plan", "how many cache nodes, how large, for a workload", run_plan},
    {"lb agent", "tell balancers the load of the instance beside it", run_lb_agent},
    {"lb apply", "give a running balancer other VIPs, see what changes", run_lb_apply},
    {"lb capture", "packets as the balancer took and left them, as pcapng", run_lb_capture},
    {"lb check", "is a balancer's configuration good?", run_lb_check},
    {"lb connections", "which connections are open, and with whom", run_lb_connections},
    {"lb decap", "open the balancer's tunnels on an instance", run_lb_decap},
    {"lb drain", "nothing new to an instance", run_lb_drain},
    {"lb ipvsadm", "ipvsadm's grammar, for a running balancer", run_lb_ipvsadm},
    {"lb load", "ask an instance's agent for its load", run_lb_load},
    {"lb maintain", "take an instance out at once", run_lb_maintain},
    {"lb run", "balance connections over instances by the load they have", run_lb_run},
    {"lb status", "VIPs, instances, load, weights, connections, rates", run_lb_status},
    {"lb trace", "which instance a flow goes to, and why", run_lb_trace},
    {"lb undrain", "end drain or maintenance of an instance", run_lb_undrain},
    {"sim cache", "simulate the cache tier at scale: throughput, queues, failure", run_sim_cache},
    {"sim lb", "simulate dispatching flows to instances: throughput, completion times", run_sim_lb},
    {"version", "the version", run_version},
    {"help", "this, or the help of a command", run_help},
};

std::string overview(const std::string& prefix) {
  std::string out = fmt::format("Usage: ballast {}COMMAND [OPTIONS]\n\nCommands:\n",
                                prefix.empty() ? "" : prefix + " ");
  for (const Subcommand& command : kSubcommands) {
    const std::string name = command.name;
    if (prefix.empty() || name.starts_with(prefix + " ")) {
      out += fmt::format("  ballast {:<14}  {}\n", name, command.help);
    }
  }
  return out + "\nEach command prints its options with --help.\n";
}

bool is_group(const std::string& word) {
  for (const Subcommand& command : kSubcommands) {
    if (std::string(command.name).starts_with(word + " ")) return true;
  }
  return false;
}

// The subcommand the words begin with; `used` is how many of them are its name.
const Subcommand* find_subcommand(const Arguments& words, size_t& used) {
  for (const Subcommand& command : kSubcommands) {
    const std::string name = command.name;
    std::string given;
    for (used = 0; used < words.size() && given.size() < name.size();) {
      given += (given.empty() ? "" : " ") + words[used++];
    }
    if (given == name) return &command;
  }
  used = 0;
  return nullptr;
}

int unknown_command(const Arguments& words) {
  std::vector<std::string> known;
  for (const Subcommand& command : kSubcommands) {
    known.emplace_back(command.name);
    const size_t space = known.back().find(' ');
    if (space != std::string::npos) known.push_back(known.back().substr(0, space));
  }
  std::string given = words.size() > 1 ? words[0] + " " + words[1] : words[0];
  std::string near = nearest(given, known);
  if (near.empty() && words.size() > 1) {
    given = words[0];
    near = nearest(given, known);
  }
  const std::string advice =
      near.empty() ? " (see ballast help)" : fmt::format("; did you mean ballast {}?", near);
  return usage_error("ballast", fmt::format("unknown command \"{}\"{}", given, advice));
}

int run_help(const Arguments& arguments) {
  if (arguments == Arguments{"--markdown"}) {
    std::fputs(reference_page().c_str(), stdout);
    return kExitDone;
  }
  if (arguments == Arguments{"--lb"}) {
    std::fputs(lb_reference_page().c_str(), stdout);
    return kExitDone;
  }
  if (arguments == Arguments{"--lb-metrics"}) {
    std::fputs(lb::lb_metrics_page().c_str(), stdout);
    return kExitDone;
  }
  if (arguments == Arguments{"--metrics"}) {
    std::fputs(telemetry::metrics_page().c_str(), stdout);
    return kExitDone;
  }
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    std::fputs(overview("").c_str(), stdout);
    return kExitDone;
  }
  size_t used = 0;
  if (const Subcommand* command = find_subcommand(arguments, used)) return command->run({"--help"});
  if (arguments.size() == 1 && is_group(arguments[0])) {
    std::fputs(overview(arguments[0]).c_str(), stdout);
    return kExitDone;
  }
  return unknown_command(arguments);
}

int dispatch(const Arguments& words) {
  if (words.empty()) {
    std::fputs(overview("").c_str(), stderr);
    return kExitUsage;
  }
  if (words[0] == "--help" || words[0] == "-h") return run_help({});
  if (words[0] == "--version" || words[0] == "-V") return run_version({});
  size_t used = 0;
  if (const Subcommand* command = find_subcommand(words, used)) {
    return command->run({words.begin() + static_cast<std::ptrdiff_t>(used), words.end()});
  }
  if (is_group(words[0]) && (words.size() == 1 || words[1] == "--help" || words[1] == "-h")) {
    std::fputs(overview(words[0]).c_str(), words.size() == 1 ? stderr : stdout);
    return words.size() == 1 ? kExitUsage : kExitDone;
  }
  return unknown_command(words);
}

}  // namespace
}  // namespace ballast::app

int main(int argc, char** argv) {
  const int status = ballast::app::dispatch({argv + 1, argv + argc});
  // A full disk or a closed pipe must not look like success.
  if (std::fflush(stdout) != 0 && status == ballast::app::kExitDone) {
    std::perror("ballast: writing to standard output");
    return ballast::app::kExitFailed;
  }
  return status;
}
