// SPDX-License-Identifier: Apache-2.0
// ballast lb load: asks instances' agents, once or as often as a balancer does, and prints what
// they say.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/flag_values.h"
#include "app/lb_secret.h"
#include "app/subcommand.h"
#include "lb/load_client.h"
#include "lb/load_source.h"
#include "telemetry/table.h"

namespace ballast::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFooter =
    "With --agent-check the addresses are TCP ones that speak HAProxy's agent-check, which needs\n"
    "no secret.\n"
    "\n"
    "With --seconds every agent is asked each --interval, all spread over it, and the table shows\n"
    "the last answers, how many polls were missed in a row, and below how late polls left and how\n"
    "soon they were answered.\n"
    "\n"
    "Exit status: 0 all answered; 1 not all did; 2 wrong usage.";

struct Asked {
  std::vector<std::string> words;
  std::vector<model::Endpoint> agents;
  std::string secret_file;
  std::string secret;
  Nanos timeout = kSecond;
  Nanos interval = 100 * kMillisecond;
  double seconds = 0;  // 0: ask once
  bool check = false;
  bool json = false;
};

template <typename Value>
Json json_of(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Of a report or a load state, which have these members alike.
template <typename Report>
Json report_json(const Report& report) {
  return {{"incarnation", fmt::format("{:016x}", report.incarnation)},
          {"number", report.number},
          {"utilisation", json_of(report.utilisation)},
          {"cores", json_of(report.cores)},
          {"connections", json_of(report.connections)},
          {"accept_queue", json_of(report.accept_queue)},
          {"latency_us", json_of(report.latency_us)}};
}

Json check_json(const proto::AgentCheck& check) {
  using Admin = proto::AgentCheck::Admin;
  using Health = proto::AgentCheck::Health;
  Json out{{"weight", json_of(check.weight)},
           {"most_connections", json_of(check.most_connections)},
           {"admin", nullptr},
           {"health", nullptr},
           {"reason", check.reason}};
  if (check.admin) {
    out["admin"] = *check.admin == Admin::kReady   ? "ready"
                   : *check.admin == Admin::kDrain ? "drain"
                                                   : "maintenance";
  }
  if (check.health) out["health"] = *check.health == Health::kUp ? "up" : "down";
  return out;
}

std::string shown(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// A row for each agent, a column for each figure; the errors go to stderr.
std::string table_text(const std::vector<Json>& rows) {
  std::vector<telemetry::Column> columns{{"agent"}};
  for (const Json& row : rows) {
    if (row.contains("error") || columns.size() > 1) continue;
    for (const auto& [name, value] : row.items())
      if (name != "agent") columns.push_back({name, !value.is_string()});
  }
  telemetry::Table table(columns);
  for (const Json& row : rows) {
    if (row.contains("error")) continue;
    std::vector<std::string> cells;
    for (const telemetry::Column& column : columns) cells.push_back(shown(row.at(column.title)));
    table.add(std::move(cells));
  }
  return columns.size() > 1 ? table.text() : "";
}

// Quantiles in microseconds.
Json quantiles_json(const Histogram& histogram) {
  const auto at = [&](double q) { return histogram.quantile(q) / kMicrosecond; };
  return {{"p50", at(0.5)}, {"p99", at(0.99)}, {"max", histogram.max() / kMicrosecond}};
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The agents that are polled, as they were named.
struct Polled {
  std::unique_ptr<lb::LoadSources> sources;
  std::vector<std::pair<io::Address, uint32_t>> agents;
};

std::vector<Json> polled_rows(const Polled& polled) {
  std::vector<Json> rows;
  for (const auto& [address, id] : polled.agents) {
    const lb::LoadState& state = polled.sources->state(id);
    Json row{{"agent", address.text()}};
    row.update(report_json(state));
    row["polls"] = state.polls;
    row["answers"] = state.answers;
    row["missed"] = state.missed;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json polled_json(const Polled& polled, double processor) {
  return {{"agents", polled_rows(polled)},
          {"late_us", quantiles_json(polled.sources->lateness())},
          {"round_trip_us", quantiles_json(polled.sources->round_trips())},
          {"stray_datagrams", polled.sources->strays()},
          {"processor_seconds", processor}};
}

std::string polled_text(const Polled& polled) {
  const Json late = quantiles_json(polled.sources->lateness());
  const Json trip = quantiles_json(polled.sources->round_trips());
  return table_text(polled_rows(polled)) +
         fmt::format("polls late by {} µs (p50), {} (p99); answered in {} µs (p50), {} (p99)\n",
                     late["p50"].dump(), late["p99"].dump(), trip["p50"].dump(),
                     trip["p99"].dump());
}

Result<Polled> poll(io::Loop& loop, const Asked& asked) {
  auto sources =
      lb::LoadSources::create(loop, {.interval = asked.interval, .secret = asked.secret});
  if (!sources) return Unexpected(sources.error());
  Polled polled{std::move(*sources), {}};
  for (const model::Endpoint& agent : asked.agents) {
    const auto address = io::resolve(agent.host, agent.port);
    if (!address) return Unexpected(address.error());
    lb::LoadTarget target;
    target.address = *address;
    const auto id = polled.sources->add(target);
    if (!id) return Unexpected(id.error());
    polled.agents.emplace_back(*address, *id);
  }
  return polled;
}

// Asks for a while; a table a second on a terminal, else one at the end. False: not all answered.
Result<bool> watch(const Asked& asked) {
  auto loop = io::Loop::create();
  if (!loop) return Unexpected(loop.error());
  const double before = processor_seconds();
  const auto polled = poll(**loop, asked);
  if (!polled) return Unexpected(polled.error());
  const bool live = !asked.json && isatty(STDOUT_FILENO) == 1;
  const char* clear = live ? "\x1b[H\x1b[J" : "";
  std::function<void()> show = [&] {
    std::printf("%s%s", clear, polled_text(*polled).c_str());
    std::fflush(stdout);
    (*loop)->after(kSecond, show);
  };
  if (live) (*loop)->after(kSecond, show);
  (*loop)->after(static_cast<Nanos>(asked.seconds * kSecond), [&] { (*loop)->stop(); });
  (*loop)->run();
  const double used = processor_seconds() - before;
  if (asked.json) {
    std::fputs((polled_json(*polled, used).dump(2) + "\n").c_str(), stdout);
  } else {
    std::printf("%s%s", clear, polled_text(*polled).c_str());
  }
  return std::ranges::all_of(polled->agents, [&](const auto& agent) {
    return polled->sources->state(agent.second).answers > 0;
  });
}

Json ask(const Asked& asked, const model::Endpoint& agent) {
  Json row{{"agent", model::to_string(agent)}};
  const auto take = [&row](const auto& answer, const auto& to_json) {
    if (answer) {
      row.update(to_json(*answer));
    } else {
      row["error"] = answer.error().message;
    }
  };
  if (asked.check) {
    take(lb::ask_agent_check(agent, asked.timeout), check_json);
  } else {
    take(lb::ask_agent(agent, asked.secret, asked.timeout), report_json<proto::LoadReport>);
  }
  return row;
}

Result<> take_agents(Asked& asked) {
  if (asked.words.empty()) return fail(ErrorCode::kInvalid, "no agent is named");
  for (const std::string& word : asked.words) {
    const auto agent = model::parse_endpoint(word);
    if (!agent) return fail(ErrorCode::kInvalid, word + ": " + agent.error().message);
    asked.agents.push_back(*agent);
  }
  if (asked.check && asked.seconds > 0)
    return fail(ErrorCode::kInvalid, "--agent-check and --seconds: give one");
  if (asked.interval <= 0) return fail(ErrorCode::kInvalid, "--interval: above 0ms");
  if (asked.check) return {};
  const auto secrets = lb_secrets(asked.secret_file);
  if (!secrets) return Unexpected(secrets.error());
  asked.secret = secrets->front();
  return {};
}

}  // namespace

int run_lb_load(const Arguments& arguments) {
  Asked asked;
  const CommandLine command{
      .name = "ballast lb load",
      .summary = "asks instances' agents for their load",
      .flags = {{"--agent-check", "", "ask by HAProxy's agent-check", "", "", false,
                 switch_into(asked.check)},
                {"--secret-file", "FILE",
                 "holds the secret; else the environment's BALLAST_LB_SECRET", "", "", false,
                 text_into(asked.secret_file, "a file's name")},
                {"--timeout", "DURATION", "how long to wait for each", "1s", "", false,
                 duration_into(asked.timeout)},
                {"--seconds", "S", "go on asking for so long", "ask once", "", false,
                 positive_into(asked.seconds, 1e6)},
                {"--interval", "DURATION", "with --seconds: how often each is asked", "100ms", "",
                 false, duration_into(asked.interval)},
                {"--json", "", "print JSON", "", "", false, switch_into(asked.json)}},
      .footer = kFooter,
      .positional = "H:P...",
      .rest = &asked.words};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  if (const auto taken = take_agents(asked); !taken)
    return usage_error(command.name, taken.error().message);
  if (asked.seconds > 0) {
    const auto answered = watch(asked);
    if (answered) return *answered ? kExitDone : kExitFailed;
    std::fprintf(stderr, "%s: %s\n", command.name.c_str(), answered.error().message.c_str());
    return kExitFailed;
  }
  std::vector<Json> rows;
  bool all = true;
  for (const model::Endpoint& agent : asked.agents) {
    rows.push_back(ask(asked, agent));
    if (!rows.back().contains("error")) continue;
    all = false;
    std::fprintf(stderr, "%s: %s\n", command.name.c_str(),
                 rows.back()["error"].get<std::string>().c_str());
  }
  std::fputs((asked.json ? Json(rows).dump(2) + "\n" : table_text(rows)).c_str(), stdout);
  return all ? kExitDone : kExitFailed;
}

}  // namespace ballast::app
