// SPDX-License-Identifier: Apache-2.0
#include "app/ipvs_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <sstream>

#include "base/units.h"

namespace ballast::app {
namespace {

using Kind = IpvsCommand::Kind;
using model::Forwarding;
using model::Instance;
using model::Scheduler;
using model::Vip;

struct Word {
  char letter;
  const char* word;  // after "--"
};

struct CommandWord : Word {
  Kind kind;
};

constexpr CommandWord kCommands[] = {
    {{'A', "add-service"}, Kind::kAddService},
    {{'E', "edit-service"}, Kind::kEditService},
    {{'D', "delete-service"}, Kind::kDeleteService},
    {{'a', "add-server"}, Kind::kAddServer},
    {{'e', "edit-server"}, Kind::kEditServer},
    {{'d', "delete-server"}, Kind::kDeleteServer},
    {{'C', "clear"}, Kind::kClear},
    {{'R', "restore"}, Kind::kRestore},
    {{'S', "save"}, Kind::kSave},
    {{'L', "list"}, Kind::kList},
    {{'l', "list"}, Kind::kList},
    {{'h', "help"}, Kind::kHelp},
};

struct Option : Word {
  bool has_value;
  Result<> (*set)(IpvsCommand&, const std::string& value);
};

struct SchedulerWord {
  const char* word;
  Scheduler scheduler;
};
// The first of a scheduler's words is the one that is written.
constexpr SchedulerWord kSchedulers[] = {
    {"wlc", Scheduler::kLeastConnections},
    {"lc", Scheduler::kLeastConnections},
    {"wrr", Scheduler::kStatic},
    {"rr", Scheduler::kEcmp},
    {"awfd", Scheduler::kAwfd},
};

struct ForwardingWord {
  const char* words;
  Forwarding forwarding;
};
constexpr ForwardingWord kForwardings[] = {{"-g", Forwarding::kL2},
                                           {"-i", Forwarding::kIpip},
                                           {"-i --tun-type gue", Forwarding::kGue},
                                           {"-m", Forwarding::kNat}};

// parse_endpoint() wants the port that ipvsadm lets one leave out.
std::string with_port(const std::string& text) {
  if (text.starts_with('[')) return text.ends_with(']') ? text + ":0" : text;
  const auto colons = std::ranges::count(text, ':');
  if (colons > 1) return fmt::format("[{}]:0", text);
  return colons == 1 ? text : text + ":0";
}

Result<> set_endpoint(model::Endpoint& into, const std::string& text) {
  auto parsed = model::parse_endpoint(with_port(text));
  if (!parsed) return Unexpected(parsed.error());
  into = *parsed;
  return {};
}

Result<> set_service(IpvsCommand& command, model::Transport protocol, const std::string& text) {
  if (command.has_service) return fail(ErrorCode::kInvalid, "a second service");
  command.has_service = true;
  command.protocol = protocol;
  return set_endpoint(command.service, text);
}

Result<> set_scheduler(IpvsCommand& command, const std::string& text) {
  std::string known;
  for (const auto& [word, scheduler] : kSchedulers) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", word);
    if (text != word) continue;
    command.scheduler = scheduler;
    return {};
  }
  Scheduler own{};
  if (model::parse_word(text, own)) {
    command.scheduler = own;
    return {};
  }
  return fail(ErrorCode::kInvalid, fmt::format("\"{}\": there are {}", text, known));
}

Result<> set_weight(IpvsCommand& command, const std::string& text) {
  const auto weight = parse_rate(text);
  if (!weight)
    return fail(ErrorCode::kInvalid, fmt::format("\"{}\": must be a number from 0 up", text));
  command.weight = *weight;
  return {};
}

Result<> set_tunnel(IpvsCommand& command, const std::string& text) {
  if (text == "ipip")
    command.forwarding = Forwarding::kIpip;
  else if (text == "gue")
    command.forwarding = Forwarding::kGue;
  else
    return fail(ErrorCode::kInvalid, fmt::format("\"{}\": there are ipip and gue", text));
  return {};
}

template <auto kProtocol>
Result<> service_option(IpvsCommand& command, const std::string& text) {
  return set_service(command, kProtocol, text);
}
template <auto kForwarding>
Result<> forwarding_option(IpvsCommand& command, const std::string& /*text*/) {
  if (kForwarding != Forwarding::kIpip || command.forwarding != Forwarding::kGue)
    command.forwarding = kForwarding;
  return {};
}
template <auto kMember>
Result<> switch_option(IpvsCommand& command, const std::string& /*text*/) {
  command.*kMember = true;
  return {};
}
Result<> nothing(IpvsCommand& /*command*/, const std::string& /*text*/) { return {}; }

constexpr Option kOptions[] = {
    {{'t', "tcp-service"}, true, service_option<model::Transport::kTcp>},
    {{'u', "udp-service"}, true, service_option<model::Transport::kUdp>},
    {{'r', "real-server"},
     true,
     [](IpvsCommand& command, const std::string& text) {
       return set_endpoint(command.server, text);
     }},
    {{'s', "scheduler"}, true, set_scheduler},
    {{'w', "weight"}, true, set_weight},
    {{'g', "gatewaying"}, false, forwarding_option<Forwarding::kL2>},
    {{'i', "ipip"}, false, forwarding_option<Forwarding::kIpip>},
    {{'m', "masquerading"}, false, forwarding_option<Forwarding::kNat>},
    {{'\0', "tun-type"}, true, set_tunnel},
    // Names are never looked up, and the order is that of the configuration.
    {{'n', "numeric"}, false, nothing},
    {{'\0', "exact"}, false, nothing},
    {{'\0', "sort"}, false, nothing},
    {{'\0', "nosort"}, false, nothing},
    {{'c', "connection"}, false, switch_option<&IpvsCommand::shows_connections>},
    {{'\0', "stats"}, false, switch_option<&IpvsCommand::shows_stats>},
    {{'\0', "rate"}, false, switch_option<&IpvsCommand::shows_rates>},
};

struct Missing : Word {
  const char* why;
};
constexpr Missing kMissing[] = {
    {{'Z', "zero"}, "counters only grow; take the difference of two readings"},
    {{'f', "fwmark-service"}, "a VIP is an address, a port and a protocol"},
    {{'p', "persistent"}, "connections stay where they are; clients are not kept together"},
    {{'M', "netmask"}, "it belongs to --persistent"},
    {{'x', "u-threshold"}, "least-connections and awfd keep an instance from filling up"},
    {{'y', "l-threshold"}, "least-connections and awfd keep an instance from filling up"},
    {{'o', "ops"}, "a UDP flow stays with its instance until it is idle"},
    {{'\0', "set"}, "times are in lb.toml: tcp_idle, tcp_closing, udp_idle"},
    {{'\0', "timeout"}, "times are in lb.toml: tcp_idle, tcp_closing, udp_idle"},
    {{'\0', "start-daemon"}, "there is no synchronisation daemon"},
    {{'\0', "stop-daemon"}, "there is no synchronisation daemon"},
    {{'\0', "daemon"}, "there is no synchronisation daemon"},
};

// A word of the command line: "-A", one letter of "-Ln", or "--add-service".
struct Token {
  char letter = '\0';
  std::string word;
  std::string shown;
};

template <typename Table>
auto find_in(const Table& table, const Token& token) {
  return std::ranges::find_if(table, [&](const auto& each) {
    return token.letter != '\0' ? each.letter == token.letter : token.word == each.word;
  });
}

Unexpected unknown(const Token& token) {
  const auto missing = find_in(kMissing, token);
  if (missing != std::end(kMissing))
    return fail(ErrorCode::kInvalid, fmt::format("{} is not there: {}", token.shown, missing->why));
  std::vector<std::string> known;
  for (const CommandWord& each : kCommands) known.push_back(fmt::format("--{}", each.word));
  for (const Option& each : kOptions) known.push_back(fmt::format("--{}", each.word));
  const std::string near = token.letter != '\0' ? "" : nearest(token.shown, known);
  return fail(ErrorCode::kInvalid,
              near.empty() ? fmt::format("unknown option {}", token.shown)
                           : fmt::format("unknown option {}; did you mean {}?", token.shown, near));
}

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  Result<IpvsCommand> parse() {
    while (next_ < arguments_.size()) {
      if (const Result<> taken = take(arguments_[next_++]); !taken)
        return Unexpected(taken.error());
    }
    if (!has_command_) return fail(ErrorCode::kInvalid, "no command, e.g. -A, -a or -L");
    if (const Result<> good = check(); !good) return Unexpected(good.error());
    return command_;
  }

 private:
  Result<> take(const std::string& argument) {
    if (argument.starts_with("--")) {
      const size_t equals = argument.find('=');
      const std::string shown = argument.substr(0, equals);
      const bool has_value = equals != std::string::npos;
      return take(Token{'\0', shown.substr(2), shown},
                  has_value ? std::optional(argument.substr(equals + 1)) : std::nullopt);
    }
    if (argument.size() < 2 || argument[0] != '-')
      return fail(ErrorCode::kInvalid, fmt::format("unexpected argument \"{}\"", argument));
    for (size_t i = 1; i < argument.size(); ++i) {
      const Token token{argument[i], "", fmt::format("-{}", argument[i])};
      const auto option = find_in(kOptions, token);
      // -w3 is -w 3.
      const bool takes_rest =
          option != std::end(kOptions) && option->has_value && i + 1 < argument.size();
      const auto value = takes_rest ? std::optional(argument.substr(i + 1)) : std::nullopt;
      if (const Result<> taken = take(token, value); !taken || takes_rest) return taken;
    }
    return {};
  }

  Result<> take(const Token& token, std::optional<std::string> value) {
    const auto command = find_in(kCommands, token);
    if (command != std::end(kCommands)) {
      if (has_command_) return fail(ErrorCode::kInvalid, token.shown + ": a second command");
      has_command_ = true;
      command_.kind = command->kind;
      return {};
    }
    const auto option = find_in(kOptions, token);
    if (option == std::end(kOptions)) return unknown(token);
    if (option->has_value && !value) {
      if (next_ == arguments_.size())
        return fail(ErrorCode::kInvalid, token.shown + " needs a value");
      value = arguments_[next_++];
    }
    if (!option->has_value && value)
      return fail(ErrorCode::kInvalid, token.shown + " takes no value");
    if (const Result<> set = option->set(command_, value.value_or("")); !set)
      return fail(ErrorCode::kInvalid, token.shown + ": " + set.error().message);
    return {};
  }

  Result<> check() const {
    const bool is_server = command_.kind == Kind::kAddServer ||
                           command_.kind == Kind::kEditServer ||
                           command_.kind == Kind::kDeleteServer;
    const bool is_service = is_server || command_.kind == Kind::kAddService ||
                            command_.kind == Kind::kEditService ||
                            command_.kind == Kind::kDeleteService;
    if (is_service && !command_.has_service)
      return fail(ErrorCode::kInvalid, "which service? Give -t or -u ADDRESS:PORT");
    if (is_server && command_.server.host.empty())
      return fail(ErrorCode::kInvalid, "which server? Give -r ADDRESS[:PORT]");
    if (!is_server && !command_.server.host.empty())
      return fail(ErrorCode::kInvalid, "-r belongs to -a, -e or -d");
    if (!is_server && (command_.weight || command_.forwarding))
      return fail(ErrorCode::kInvalid, "weight and forwarding belong to -a or -e");
    if ((is_server || !is_service) && command_.scheduler)
      return fail(ErrorCode::kInvalid, "-s belongs to -A or -E");
    if (command_.shows_connections && (command_.kind != Kind::kList || command_.has_service))
      return fail(ErrorCode::kInvalid, "-c belongs to -L, and goes without a service");
    return {};
  }

  const std::vector<std::string>& arguments_;
  size_t next_ = 0;
  bool has_command_ = false;
  IpvsCommand command_;
};

std::string shown_service(const IpvsCommand& command) {
  return fmt::format("{} {}", command.protocol == model::Transport::kTcp ? "-t" : "-u",
                     model::to_string(command.service));
}

// In the form that completed VIPs have.
Vip service_of(const IpvsCommand& command) {
  std::vector<Vip> one(1);
  one[0].address = command.service.host;
  one[0].port = command.service.port;
  one[0].protocol = command.protocol;
  one[0].scheduler = command.scheduler.value_or(Scheduler::kLeastConnections);
  model::complete(one);
  return one[0];
}

Result<std::vector<Vip>::iterator> find_service(const IpvsCommand& command,
                                                std::vector<Vip>& vips) {
  const auto found =
      std::ranges::find_if(vips, [&](const Vip& vip) { return is_of(command, vip); });
  if (found == vips.end())
    return fail(ErrorCode::kState, fmt::format("there is no service {}", shown_service(command)));
  return found;
}

Result<> set_forwarding(const IpvsCommand& command, Vip& vip, size_t others) {
  const Forwarding wanted = command.forwarding.value_or(
      others == 0 && command.kind == Kind::kAddServer ? Forwarding::kL2 : vip.forwarding);
  if (wanted == vip.forwarding) return {};
  if (others > 0)
    return fail(ErrorCode::kState,
                fmt::format("{} forwards by {}, the same way to all its servers",
                            shown_service(command), model::word_of(vip.forwarding)));
  vip.forwarding = wanted;
  return {};
}

Result<> change_server(const IpvsCommand& command, Vip& vip) {
  std::vector<Vip> one(1, vip);
  one[0].instances.assign(1, Instance());
  one[0].instances[0].address = command.server.host;
  model::complete(one);
  const std::string address = one[0].instances[0].address;
  const auto has_port = [&](const Instance& each) {
    const uint16_t port = command.server.port;
    return each.port == 0 ? port == 0 || port == vip.port
                          : each.port == (port == 0 ? vip.port : port);
  };
  const auto found = std::ranges::find_if(vip.instances, [&](const Instance& each) {
    return each.address == address && has_port(each);
  });
  const bool is_there = found != vip.instances.end();
  const std::string shown =
      command.server.port == 0 ? command.server.host : model::to_string(command.server);
  if (command.kind == Kind::kAddServer && is_there)
    return fail(ErrorCode::kState,
                fmt::format("{} is a server of {} already", shown, shown_service(command)));
  if (command.kind != Kind::kAddServer && !is_there)
    return fail(ErrorCode::kState,
                fmt::format("{} is no server of {}", shown, shown_service(command)));
  if (command.kind == Kind::kDeleteServer) {
    vip.instances.erase(found);
    return {};
  }
  if (const Result<> set = set_forwarding(command, vip, vip.instances.size() - (is_there ? 1 : 0));
      !set)
    return set;
  const bool is_nat = vip.forwarding == Forwarding::kNat;
  if (!is_nat && command.server.port != 0 && command.server.port != vip.port)
    return fail(ErrorCode::kState,
                fmt::format("{}: only -m changes the port; give {} or none", shown, vip.port));
  Instance& server = is_there ? *found : vip.instances.emplace_back();
  server.address = address;
  server.port = is_nat ? command.server.port : 0;
  // A name made of the address is made anew.
  server.name = is_there && server.name.find(address) == std::string::npos ? server.name : "";
  if (command.weight) server.weight = *command.weight;
  return {};
}

Result<> edit(const IpvsCommand& command, std::vector<Vip>& vips) {
  if (command.kind == Kind::kClear) {
    vips.clear();
    return {};
  }
  const auto found = find_service(command, vips);
  if (command.kind == Kind::kAddService) {
    if (found)
      return fail(ErrorCode::kState,
                  fmt::format("there is a service {} already", shown_service(command)));
    vips.push_back(service_of(command));
    return {};
  }
  if (!found) return Unexpected(found.error());
  if (command.kind == Kind::kDeleteService)
    vips.erase(*found);
  else if (command.kind != Kind::kEditService)
    return change_server(command, **found);
  else if (command.scheduler)
    (*found)->scheduler = *command.scheduler;
  return {};
}

std::string shown_server(const Vip& vip, const Instance& instance) {
  return model::to_string({instance.address, instance.port != 0 ? instance.port : vip.port});
}

}  // namespace

bool is_of(const IpvsCommand& command, const Vip& vip) {
  const Vip wanted = service_of(command);
  return vip.address == wanted.address && vip.port == wanted.port &&
         vip.protocol == wanted.protocol;
}

std::string_view ipvs_word_of(Scheduler scheduler) {
  for (const auto& [word, each] : kSchedulers) {
    if (each == scheduler) return word;
  }
  return model::word_of(scheduler);
}

Result<IpvsCommand> parse_ipvs(const std::vector<std::string>& arguments) {
  return Parser(arguments).parse();
}

Result<> apply_ipvs(const IpvsCommand& command, std::vector<Vip>& vips) {
  std::vector<Vip> changed = vips;
  if (const Result<> edited = edit(command, changed); !edited) return edited;
  model::complete(changed);
  if (const auto problem = model::find_problem(changed, true))
    return fail(ErrorCode::kInvalid, problem->key + ": " + problem->message);
  vips = std::move(changed);
  return {};
}

Result<> restore_ipvs(const std::string& text, std::vector<Vip>& vips) {
  std::vector<Vip> changed = vips;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    if (arguments.empty() || arguments[0].starts_with('#')) continue;
    const auto command = parse_ipvs(arguments);
    Result<> done;
    if (!command)
      done = Unexpected(command.error());
    else if (command->kind == Kind::kAddService || command->kind == Kind::kAddServer)
      done = apply_ipvs(*command, changed);
    else
      done = fail(ErrorCode::kInvalid, "only -A and -a stand here");
    if (!done)
      return fail(done.error().code, fmt::format("line {}: {}", number, done.error().message));
  }
  vips = std::move(changed);
  return {};
}

std::string save_ipvs(const std::vector<Vip>& vips) {
  std::string out;
  for (const Vip& vip : vips) {
    const std::string service =
        fmt::format("{} {}", vip.protocol == model::Transport::kTcp ? "-t" : "-u",
                    model::to_string({vip.address, vip.port}));
    out += fmt::format("-A {} -s {}\n", service, ipvs_word_of(vip.scheduler));
    const auto* const way =
        std::ranges::find(kForwardings, vip.forwarding, &ForwardingWord::forwarding);
    for (const Instance& instance : vip.instances)
      out += fmt::format("-a {} -r {} {} -w {}\n", service, shown_server(vip, instance), way->words,
                         instance.weight);
  }
  return out;
}

}  // namespace ballast::app
