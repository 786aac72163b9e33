// SPDX-License-Identifier: Apache-2.0
// ballast lb ipvsadm: what scripts written for IPVS say, done to a running balancer.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/ipvs_command.h"
#include "app/json_text.h"
#include "app/lb_client.h"
#include "app/subcommand.h"
#include "lb/connections.h"

namespace ballast::app {
namespace {

using nlohmann::json;

constexpr const char* kName = "ballast lb ipvsadm";
constexpr const char* kHelp =
    R"(ballast lb ipvsadm: ipvsadm's grammar, for the VIPs of a running `ballast lb run`

Usage: ballast lb ipvsadm COMMAND [SERVICE] [SERVER]

Commands:
  -A, --add-service SERVICE [-s SCHEDULER]
  -E, --edit-service SERVICE -s SCHEDULER
  -D, --delete-service SERVICE
  -a, --add-server SERVICE SERVER [-g|-i|-m] [-w WEIGHT]
  -e, --edit-server SERVICE SERVER [-g|-i|-m] [-w WEIGHT]
  -d, --delete-server SERVICE SERVER
  -C, --clear          no service is left
  -S, --save           lines for --restore, on stdout
  -R, --restore        adds what stands on stdin, all or nothing
  -L, -l, --list       services and servers; --stats: totals, --rate: a second;
                       -c, --connection: the connections in the table
  -h, --help           print this and leave

Services and servers:
  -t, --tcp-service ADDRESS[:PORT]   no port: all that have no service of their own
  -u, --udp-service ADDRESS[:PORT]   an IPv6 address with a port stands in brackets
  -s, --scheduler WORD               wlc, lc: least-connections; wrr: static; rr: ecmp; awfd [wlc]
  -r, --real-server ADDRESS[:PORT]   no names; a port of its own only with -m
  -g, --gatewaying                   forwarding by MAC address [this]
  -i, --ipip                         in a tunnel; --tun-type gue: in UDP
  -m, --masquerading                 by NAT of the destination
  -w, --weight NUMBER                a factor; 0 drains [1]
  -n, --numeric, --sort, --exact     taken and not needed

The balancer is asked at BALLAST_LB_API [/run/ballast/lb.sock]. Load sources and health checks have no
words here: `ballast lb apply -f` sets them, and --save leaves them out.

Exit status: 0 done; 1 refused or no balancer; 2 wrong usage.
)";

// What the status says of a VIP or an instance, as ipvsadm's columns.
std::string figures(const json& object, const IpvsCommand& command, bool is_server) {
  const auto whole = [&](const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? fmt::format("{:.0f}", found->get<double>())
                                                       : std::string("-");
  };
  // What goes back to clients does not pass through here, but for NAT's.
  if (command.shows_stats)
    return fmt::format(" {:>8} {:>8} {:>8} {:>8} {:>8}", whole("flows"), whole("packets"), "-",
                       whole("bytes"), "-");
  if (command.shows_rates)
    return fmt::format(" {:>8} {:>8} {:>8} {:>8} {:>8}", whole("flows_per_s"),
                       whole("packets_per_s"), "-", whole("bytes_per_s"), "-");
  return is_server ? fmt::format(" {:<10} {:<10}", whole("open"), "-") : "";
}

const char* forward_word(model::Forwarding forwarding) {
  switch (forwarding) {
    case model::Forwarding::kL2:
      return "Route";
    case model::Forwarding::kNat:
      return "Masq";
    case model::Forwarding::kIpip:
    case model::Forwarding::kGue:
      return "Tunnel";
  }
  return "";
}

json find_named(const json& list, const std::string& name) {
  if (!list.is_array()) return json::object();
  for (const json& each : list) {
    if (each.is_object() && each.value("name", "") == name) return each;
  }
  return json::object();
}

std::string head(const IpvsCommand& command) {
  if (command.shows_stats)
    return "Prot LocalAddress:Port               Conns   InPkts  OutPkts  InBytes OutBytes\n"
           "  -> RemoteAddress:Port\n";
  if (command.shows_rates)
    return "Prot LocalAddress:Port                 CPS    InPPS   OutPPS    InBPS   OutBPS\n"
           "  -> RemoteAddress:Port\n";
  return "Prot LocalAddress:Port Scheduler Flags\n"
         "  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn\n";
}

std::string list_text(const std::vector<model::Vip>& vips, const json& status,
                      const IpvsCommand& command) {
  std::string out = head(command);
  const bool has_figures = command.shows_stats || command.shows_rates;
  for (const model::Vip& vip : vips) {
    if (command.has_service && !is_of(command, vip)) continue;
    const json of_vip = find_named(status.value("vips", json::array()), vip.name);
    const std::string where =
        fmt::format("{}  {}", vip.protocol == model::Transport::kTcp ? "TCP" : "UDP",
                    model::to_string({vip.address, vip.port}));
    out += has_figures ? fmt::format("{:<33}{}\n", where, figures(of_vip, command, false))
                       : fmt::format("{} {}\n", where, ipvs_word_of(vip.scheduler));
    for (const model::Instance& instance : vip.instances) {
      const json of_instance = find_named(of_vip.value("instances", json::array()), instance.name);
      const std::string server =
          model::to_string({instance.address, instance.port != 0 ? instance.port : vip.port});
      const double weight = instance.operation == model::Operation::kUp ? instance.weight : 0;
      out += has_figures
                 ? fmt::format("  -> {:<28}{}\n", server, figures(of_instance, command, true))
                 : fmt::format("  -> {:<28} {:<7} {:<6}{}\n", server, forward_word(vip.forwarding),
                               weight, figures(of_instance, command, true));
    }
  }
  return out;
}

std::string state_word(const json& connection) {
  if (connection.value("protocol", "") == "udp") return "UDP";
  const std::string state = connection.value("state", "");
  if (state == "open") return "ESTABLISHED";
  return state == "closing" ? "FIN_WAIT" : "CLOSE";
}

std::string connections_text(const json& said) {
  std::string out =
      "IPVS connection entries\n"
      "pro expire state       source             virtual            destination\n";
  for (const json& each : said.value("connections", json::array())) {
    const auto expires = static_cast<uint64_t>(each.value("expires_s", 0.0));
    out += fmt::format("{} {:02}:{:02}  {:<11} {:<18} {:<18} {}\n",
                       each.value("protocol", "") == "tcp" ? "TCP" : "UDP", expires / 60,
                       expires % 60, state_word(each), text_of(each, "source"),
                       text_of(each, "destination"), text_of(each, "address"));
  }
  return out;
}

Result<std::string> answer_of(const IpvsCommand& command, const LbClient& client) {
  if (command.kind == IpvsCommand::Kind::kHelp) return std::string(kHelp);
  if (command.shows_connections) {
    const auto said = client.get(fmt::format("/v1/connections?limit={}", lb::kMostListed));
    if (!said) return Unexpected(said.error());
    const json root = json::parse(*said, nullptr, false);
    if (root.is_object() && root.value("more", false))
      std::fputs("ballast lb ipvsadm: there are more than these\n", stderr);
    return connections_text(root.is_object() ? root : json::object());
  }
  if (command.kind == IpvsCommand::Kind::kSave || command.kind == IpvsCommand::Kind::kList) {
    const auto state = client.state();
    if (!state) return Unexpected(state.error());
    if (command.kind == IpvsCommand::Kind::kSave) return save_ipvs(state->vips);
    const bool is_there = std::ranges::any_of(
        state->vips, [&](const model::Vip& vip) { return is_of(command, vip); });
    if (command.has_service && !is_there)
      return fail(ErrorCode::kState, "there is no such service");
    const auto status = client.get("/v1/status");
    if (!status) return Unexpected(status.error());
    const json root = json::parse(*status, nullptr, false);
    return list_text(state->vips, root.is_object() ? root : json::object(), command);
  }
  std::string input;
  const bool is_restore = command.kind == IpvsCommand::Kind::kRestore;
  if (is_restore) input.assign(std::istreambuf_iterator<char>(std::cin), {});
  const auto done = client.change([&](std::vector<model::Vip>& vips) {
    return is_restore ? restore_ipvs(input, vips) : apply_ipvs(command, vips);
  });
  if (!done) return Unexpected(done.error());
  return std::string();
}

}  // namespace

int run_lb_ipvsadm(const Arguments& arguments) {
  // As ipvsadm does: without a command it lists.
  const auto command = parse_ipvs(arguments.empty() ? Arguments{"-L"} : arguments);
  if (!command)
    return usage_error(kName, fmt::format("{} (see {} --help)", command.error().message, kName));
  const auto answer = answer_of(*command, LbClient());
  if (!answer) return lb_failed(kName, answer.error());
  std::fputs(answer->c_str(), stdout);
  return kExitDone;
}

}  // namespace ballast::app
