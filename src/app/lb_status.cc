// SPDX-License-Identifier: Apache-2.0
// ballast lb status and trace: what a running balancer does, and where it sends a flow.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/command_line.h"
#include "app/flag_values.h"
#include "app/json_text.h"
#include "app/lb_client.h"
#include "app/subcommand.h"
#include "telemetry/table.h"

namespace ballast::app {
namespace {

using nlohmann::json;
using telemetry::Table;

constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

const json& part_of(const json& object, const char* key) {
  static const json kNone;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? kNone : *found;
}

double number_of(const json& object, const char* key) {
  const json& value = part_of(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

// "1.2 M" for 1,234,567.
std::string scaled(double value) {
  for (const auto& [unit, size] : {std::pair("G", 1e9), std::pair("M", 1e6), std::pair("k", 1e3)}) {
    if (value >= size) return fmt::format("{:.1f} {}", value / size, unit);
  }
  return fmt::format("{:.0f}", value);
}

std::string scaled(const json& object, const char* key) { return scaled(number_of(object, key)); }

std::string percent(const json& value) {
  return value.is_number() ? fmt::format("{:.1f} %", 100 * value.get<double>()) : "-";
}

std::string address_of(const json& object) {
  const std::string address = text_of(object, "address");
  const auto port = static_cast<uint16_t>(number_of(object, "port"));
  return port == 0 ? address : model::to_string({address, port});
}

std::string health_of(const json& instance) {
  const json& health = part_of(instance, "health");
  if (!health.is_object()) return "-";
  const std::string state = text_of(health, "state");
  const std::string cause = text_of(health, "cause");
  return state == "down" && !cause.empty() ? fmt::format("down: {}", cause) : state;
}

std::string load_of(const json& instance) {
  const json& load = part_of(instance, "load");
  if (!load.is_object()) return "-";
  const std::string now = percent(part_of(load, "utilisation"));
  const double missed = number_of(load, "missed");
  return missed == 0 ? now : fmt::format("{} ({:.0f} missed)", now, missed);
}

std::string vip_text(const json& vip) {
  std::string out =
      fmt::format("\n{}  {}/{}, {}, {}: {} packets/s, {} bit/s, {} flows/s\n", text_of(vip, "name"),
                  text_of(vip, "protocol"), address_of(vip), text_of(vip, "forwarding"),
                  text_of(vip, "scheduler"), scaled(vip, "packets_per_s"),
                  scaled(8 * number_of(vip, "bytes_per_s")), scaled(vip, "flows_per_s"));
  Table table({{"instance"},
               {"address"},
               {"operation"},
               {"health"},
               {"load", true},
               {"weight", true},
               {"share", true},
               {"why"},
               {"open", true},
               {"packets/s", true},
               {"bit/s", true},
               {"flows/s", true}});
  for (const json& each : part_of(vip, "instances")) {
    table.add({text_of(each, "name"), address_of(each), text_of(each, "operation"), health_of(each),
               load_of(each), text_of(each, "weight"), percent(part_of(each, "share")),
               text_of(each, "reason"), text_of(each, "open"), scaled(each, "packets_per_s"),
               scaled(8 * number_of(each, "bytes_per_s")), scaled(each, "flows_per_s")});
  }
  return out + (table.empty() ? "no instances\n" : table.text());
}

std::string status_text(const json& status) {
  std::string interfaces;
  for (const json& each : part_of(status, "interfaces"))
    interfaces += fmt::format("{}{} ({})", interfaces.empty() ? "" : ", ", text_of(each, "name"),
                              text_of(each, "mode"));
  const json& connections = part_of(status, "connections");
  std::string out =
      fmt::format("interfaces {}; configuration {}; {} of {} connections\n",
                  interfaces.empty() ? "-" : interfaces, text_of(status, "generation"),
                  text_of(connections, "entries"), text_of(connections, "capacity"));
  for (const json& vip : part_of(status, "vips")) out += vip_text(vip);
  Table leaving({{"leaving"}, {"vip"}, {"address"}, {"connections", true}});
  for (const json& each : part_of(status, "leaving"))
    leaving.add({text_of(each, "name"), text_of(each, "vip"), text_of(each, "address"),
                 text_of(each, "entries")});
  if (!leaving.empty()) out += "\n" + leaving.text();
  Table counters({{"counter"}, {"count", true}});
  for (const auto& [name, value] : part_of(status, "counters").items()) {
    if (value.is_number() && value.get<double>() > 0) counters.add({name, value.dump()});
  }
  if (!counters.empty()) out += "\n" + counters.text();
  return out;
}

// The status once, on stdout.
Result<> print_status(const LbClient& client, bool as_json, bool clears) {
  const auto text = client.get("/v1/status");
  if (!text) return Unexpected(text.error());
  if (as_json) {
    std::printf("%s\n", text->c_str());
  } else {
    const json status = json::parse(*text, nullptr, false);
    if (!status.is_object())
      return fail(ErrorCode::kUnavailable, "the balancer's answer is not understood");
    std::printf("%s%s", clears ? kClearScreen : "", status_text(status).c_str());
  }
  // A reader that has gone ends a watch.
  return std::fflush(stdout) == 0 ? Result<>() : fail_errno("writing to standard output", errno);
}

std::string trace_text(const json& said, const std::vector<std::string>& words) {
  const std::string flow = fmt::format("{} {} -> {}", words[0], words[1], words[2]);
  const json& instance = part_of(said, "instance");
  std::string out = fmt::format("{}: ", flow);
  if (instance.is_string())
    out += fmt::format("instance {} ({}) of VIP {}", instance.get<std::string>(),
                       text_of(said, "address"), text_of(said, "vip"));
  else
    out += "no instance";
  return fmt::format("{}\n{}\n", out, text_of(said, "why"));
}

}  // namespace

int run_lb_status(const Arguments& arguments) {
  LbClient client;
  bool as_json = false;
  bool is_watch = false;
  const CommandLine command{
      .name = "ballast lb status",
      .summary = "VIPs, instances, load, weights, connections and rates of a running balancer",
      .flags = {{.name = "--json", .help = "as JSON", .set = switch_into(as_json)},
                {.name = "--watch",
                 .help = "again every second, until ended; with --json one line each",
                 .set = switch_into(is_watch)},
                client.flag()}};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  const bool clears = is_watch && isatty(STDOUT_FILENO) != 0;
  for (;;) {
    if (const Result<> printed = print_status(client, as_json, clears); !printed)
      return lb_failed(command.name, printed.error());
    if (!is_watch) return kExitDone;
    std::this_thread::sleep_for(std::chrono::seconds(1));
    if (!clears && !as_json) std::printf("\n");
  }
}

int run_lb_trace(const Arguments& arguments) {
  LbClient client;
  bool as_json = false;
  std::vector<std::string> words;
  const CommandLine command{
      .name = "ballast lb trace",
      .summary = "which instance a flow goes to, and why",
      .flags = {{.name = "--json", .help = "as JSON", .set = switch_into(as_json)}, client.flag()},
      .footer =
          "PROTOCOL is tcp or udp, SOURCE the client and DESTINATION the VIP, each\n"
          "ADDRESS:PORT. Nothing is sent and no table changes.\n"
          "\n"
          "Exit status: 0 it goes to an instance; 1 it goes to none, or no balancer "
          "answers;\n"
          "2 wrong usage.",
      .positional = "PROTOCOL SOURCE DESTINATION",
      .rest = &words};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  if (words.size() != 3)
    return usage_error(command.name,
                       "needs PROTOCOL SOURCE DESTINATION, e.g. tcp "
                       "198.51.100.1:40000 192.0.2.1:80");
  const auto text = client.get(fmt::format("/v1/trace?protocol={}&source={}&destination={}",
                                           percent_encoded(words[0]), percent_encoded(words[1]),
                                           percent_encoded(words[2])));
  if (!text) return lb_failed(command.name, text.error());
  const json said = json::parse(*text, nullptr, false);
  std::printf("%s", as_json ? (*text + "\n").c_str() : trace_text(said, words).c_str());
  return part_of(said, "instance").is_string() ? kExitDone : kExitFailed;
}

}  // namespace ballast::app
