// SPDX-License-Identifier: Apache-2.0
// ballast lb agent: runs beside an instance and tells balancers its load.
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "app/command_line.h"
#include "app/flag_values.h"
#include "app/lb_secret.h"
#include "app/notify.h"
#include "app/signals.h"
#include "app/subcommand.h"
#include "base/log.h"
#include "lb/agent.h"

namespace ballast::app {
namespace {

constexpr const char* kMeasureGroup = "What is measured";

constexpr const char* kFooter =
    "The balancer and its agents share a secret of 16 bytes or more. An agent answers only who\n"
    "knows it, or one of several, and an answer is good for one question. HAProxy's\n"
    "agent-check has no secret: bind --agent-check to an address that only HAProxy reaches.\n"
    "\n"
    "Exit status: 0 ended by a signal; 1 an address or a control group is not to be had; 2 wrong\n"
    "usage.";

struct Asked {
  lb::AgentOptions options;
  std::string secret_file;
};

auto endpoint_into(model::Endpoint& target) {
  return [&target](const std::string& text) -> Result<> {
    const auto endpoint = model::parse_endpoint(text);
    if (!endpoint) return Unexpected(endpoint.error());
    target = *endpoint;
    return {};
  };
}

Result<> add_port(std::vector<uint16_t>& ports, const std::string& text) {
  uint16_t port = 0;
  const auto set = count_into(port, UINT16_MAX)(text);
  if (set) ports.push_back(port);
  return set;
}

// "http://H:P/path"
Result<> set_probe(lb::AgentOptions& options, const std::string& text) {
  constexpr std::string_view kScheme = "http://";
  if (!text.starts_with(kScheme)) return fail(ErrorCode::kInvalid, "write http://HOST:PORT/PATH");
  const size_t slash = std::min(text.find('/', kScheme.size()), text.size());
  const auto endpoint =
      model::parse_endpoint(std::string_view(text).substr(kScheme.size(), slash - kScheme.size()));
  if (!endpoint) return Unexpected(endpoint.error());
  options.probe = *endpoint;
  options.probe_path = slash < text.size() ? text.substr(slash) : "/";
  return {};
}

Result<> set_group(std::string& group, const std::string& text) {
  if (!text.starts_with('/'))
    return fail(ErrorCode::kInvalid, "write it as /proc/PID/cgroup does, from /");
  group = text == "/" ? "" : text;
  return {};
}

std::vector<Flag> agent_flags(Asked& asked) {
  lb::AgentOptions& options = asked.options;
  return {
      {"--listen", "H:P", "where balancers ask, by UDP", "[::]:4780", "", false,
       endpoint_into(options.listen)},
      {"--agent-check", "H:P", "where HAProxy asks, by its agent-check over TCP", "", "", false,
       endpoint_into(options.check)},
      {"--secret-file", "FILE",
       "holds the secret, or one a line; else the environment's BALLAST_LB_SECRET", "", "", false,
       text_into(asked.secret_file, "a file's name")},
      {"--cgroup", "PATH", "processor time of this control group, e.g. /system.slice/nginx.service",
       "the whole host", kMeasureGroup, false,
       [&options](const std::string& text) { return set_group(options.group, text); }},
      {"--cgroup-root", "PATH", "where control groups are mounted", "/sys/fs/cgroup", kMeasureGroup,
       false, text_into(options.group_root, "a folder's name")},
      {"--port", "PORT", "of the instance: its connections and its accept queue are counted", "",
       kMeasureGroup, true,
       [&options](const std::string& text) { return add_port(options.ports, text); }},
      {"--probe", "URL", "ask the instance over HTTP, 10 times a second, for its latency", "",
       kMeasureGroup, false,
       [&options](const std::string& text) { return set_probe(options, text); }},
      {"--window", "DURATION", "of time over which processor use is measured", "200ms",
       kMeasureGroup, false, duration_into(options.window)},
  };
}

// On a host without IPv6 "any address" is IPv4's.
Result<std::unique_ptr<lb::Agent>> make_agent(io::Loop& loop, lb::AgentOptions options) {
  auto agent = lb::Agent::create(loop, options);
  if (agent || agent.error().sys_errno != EAFNOSUPPORT || options.listen.host != "::") return agent;
  options.listen.host = "0.0.0.0";
  return lb::Agent::create(loop, std::move(options));
}

Result<> run_agent(const lb::AgentOptions& options) {
  auto loop = io::Loop::create();
  if (!loop) return Unexpected(loop.error());
  const auto signals =
      Signals::watch(**loop, {SIGTERM, SIGINT}, [&loop](int /*signal*/) { (*loop)->stop(); });
  if (!signals) return Unexpected(signals.error());
  const auto agent = make_agent(**loop, options);
  if (!agent) return Unexpected(agent.error());
  log_info("load is told on {} (UDP)", (*agent)->address().text());
  if (!options.check.host.empty())
    log_info("agent-check on {} (TCP)", (*agent)->check_address().text());
  (void)notify_service_manager("READY=1");
  (*loop)->run();
  (void)notify_service_manager("STOPPING=1");
  return {};
}

}  // namespace

int run_lb_agent(const Arguments& arguments) {
  Asked asked;
  asked.options.listen = {"::", 4780};
  const CommandLine command{.name = "ballast lb agent",
                            .summary = "tells balancers the load of the instance it runs beside",
                            .flags = agent_flags(asked),
                            .footer = kFooter};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  if (asked.options.window <= 0) return usage_error(command.name, "--window: above 0ms");
  auto secrets = lb_secrets(asked.secret_file);
  if (!secrets) return usage_error(command.name, secrets.error().message);
  asked.options.secrets = std::move(*secrets);
  if (const auto ran = run_agent(asked.options); !ran) {
    std::fprintf(stderr, "%s: %s\n", command.name.c_str(), ran.error().message.c_str());
    return kExitFailed;
  }
  return kExitDone;
}

}  // namespace ballast::app
