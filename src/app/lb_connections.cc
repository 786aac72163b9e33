// SPDX-License-Identifier: Apache-2.0
// ballast lb connections: what is in a running balancer's connection table.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "app/command_line.h"
#include "app/flag_values.h"
#include "app/json_text.h"
#include "app/lb_client.h"
#include "app/subcommand.h"
#include "lb/connections.h"
#include "telemetry/table.h"

namespace ballast::app {
namespace {

using nlohmann::json;

std::string seconds_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? fmt::format("{:.0f} s", found->get<double>())
                                                     : "-";
}

std::string connections_text(const json& said) {
  telemetry::Table table({{"protocol"},
                          {"client"},
                          {"VIP"},
                          {"name"},
                          {"instance"},
                          {"address"},
                          {"state"},
                          {"idle", true},
                          {"expires in", true}});
  const json& list = said["connections"];
  for (const json& each : list)
    table.add({text_of(each, "protocol"), text_of(each, "source"), text_of(each, "destination"),
               text_of(each, "vip"), text_of(each, "instance"), text_of(each, "address"),
               text_of(each, "state"), seconds_of(each, "idle_s"), seconds_of(each, "expires_s")});
  if (table.empty()) return "no connections\n";
  const bool has_more = said.value("more", false);
  return table.text() + (has_more ? fmt::format("and more than these {}\n", list.size()) : "");
}

}  // namespace

int run_lb_connections(const Arguments& arguments) {
  LbClient client;
  bool as_json = false;
  lb::ConnectionFilter filter;
  const CommandLine command{
      .name = "ballast lb connections",
      .summary = "the connections in a running balancer's table",
      .flags = {{.name = "--vip",
                 .value = "NAME",
                 .help = "of this VIP",
                 .set = text_into(filter.vip, "a name")},
                {.name = "--instance",
                 .value = "NAME",
                 .help = "with instances of this name",
                 .set = text_into(filter.instance, "a name")},
                {.name = "--source",
                 .value = "ADDRESS",
                 .help = "of this client",
                 .set = text_into(filter.source, "an address")},
                {.name = "--limit",
                 .value = "COUNT",
                 .help = "at most so many, in no order",
                 .default_text = std::to_string(filter.limit),
                 .set = count_into(filter.limit, lb::kMostListed)},
                {.name = "--json", .help = "as JSON", .set = switch_into(as_json)},
                client.flag()},
      .footer =
          "A flow is here from its second packet on (TCP: from the client's answer to the\n"
          "instance). `ballast lb trace` asks for one, and says where new ones go."};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  const auto text = client.get(fmt::format(
      "/v1/connections?vip={}&instance={}&source={}&limit={}", percent_encoded(filter.vip),
      percent_encoded(filter.instance), percent_encoded(filter.source), filter.limit));
  if (!text) return lb_failed(command.name, text.error());
  if (as_json) {
    std::printf("%s\n", text->c_str());
    return kExitDone;
  }
  const json said = json::parse(*text, nullptr, false);
  if (!said.is_object() || !said.contains("connections"))
    return lb_failed(command.name,
                     {ErrorCode::kUnavailable, "the balancer's answer is not understood"});
  std::fputs(connections_text(said).c_str(), stdout);
  return kExitDone;
}

}  // namespace ballast::app
