// SPDX-License-Identifier: Apache-2.0
// ballast lb apply, check, drain, undrain, maintain: what the VIPs are to be.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/flag_values.h"
#include "app/lb_client.h"
#include "app/lb_config.h"
#include "app/read_file.h"
#include "app/subcommand.h"
#include "base/units.h"

namespace ballast::app {
namespace {

using nlohmann::json;

Flag json_flag(bool& into) {
  return {.name = "--json", .help = "as JSON", .set = switch_into(into)};
}

Result<std::string> text_of(const std::string& file) {
  if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  auto text = read_file(file);
  if (!text) return fail(ErrorCode::kInvalid, fmt::format("{}: {}", file, text.error().message));
  return text;
}

void print_changes(const std::vector<std::string>& changes, bool is_dry_run, bool as_json) {
  if (as_json) {
    std::printf("%s\n", json{{"changes", changes}, {"dry_run", is_dry_run}}.dump().c_str());
    return;
  }
  for (const std::string& line : changes) std::printf("%s\n", line.c_str());
  if (changes.empty()) std::fputs("no change\n", stderr);
}

std::string place_of(const model::Vip& vip) { return model::to_string({vip.address, vip.port}); }

// By its name, or where it is: tcp/ADDRESS:PORT, ADDRESS:PORT.
bool is_called(const model::Vip& vip, const std::string& word) {
  return vip.name == word || place_of(vip) == word ||
         fmt::format("{}/{}", model::word_of(vip.protocol), place_of(vip)) == word;
}

bool is_called(const model::Instance& instance, const std::string& word) {
  return instance.name == word || instance.address == word ||
         model::to_string({instance.address, instance.port}) == word;
}

// The one item that the word names; kState says that none or several do.
template <typename Item>
Result<Item*> find_called(std::vector<Item>& items, const std::string& word, const char* what) {
  std::vector<std::string> names;
  Item* found = nullptr;
  for (Item& item : items) {
    names.push_back(item.name);
    if (item.name == word) return &item;
    if (!is_called(item, word)) continue;
    if (found != nullptr)
      return fail(ErrorCode::kState, fmt::format("\"{}\": several {}s are meant by that; give the "
                                                 "name",
                                                 word, what));
    found = &item;
  }
  if (found != nullptr) return found;
  const std::string near = nearest(word, names);
  return fail(ErrorCode::kState,
              near.empty()
                  ? fmt::format("there is no {} \"{}\"", what, word)
                  : fmt::format("there is no {} \"{}\"; did you mean {}?", what, word, near));
}

int run_operation(const char* name, const char* summary, model::Operation operation,
                  const Arguments& arguments) {
  LbClient client;
  bool as_json = false;
  std::vector<std::string> words;
  const CommandLine command{.name = name,
                            .summary = summary,
                            .flags = {client.flag(), json_flag(as_json)},
                            .footer =
                                "VIP is its name or ADDRESS:PORT; INSTANCE its name or "
                                "address.",
                            .positional = "VIP INSTANCE",
                            .rest = &words};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  if (words.size() != 2) return usage_error(command.name, "needs VIP and INSTANCE");
  const auto done = client.change([&](std::vector<model::Vip>& vips) -> Result<> {
    const auto vip = find_called(vips, words[0], "VIP");
    if (!vip) return Unexpected(vip.error());
    const auto instance = find_called((*vip)->instances, words[1], "instance");
    if (!instance) return Unexpected(instance.error());
    (*instance)->operation = operation;
    return {};
  });
  if (!done) return lb_failed(command.name, done.error());
  print_changes(*done, false, as_json);
  return kExitDone;
}

}  // namespace

int run_lb_apply(const Arguments& arguments) {
  LbClient client;
  std::string file;
  bool is_dry_run = false;
  bool as_json = false;
  const CommandLine command{
      .name = "ballast lb apply",
      .summary = "makes a file's VIPs those of a running balancer, and prints what changes",
      .flags = {{.name = "-f,--file",
                 .value = "FILE",
                 .help = "VIPs as TOML or JSON, `-` for stdin; [lb] in it is not looked at",
                 .set = text_into(file, "a file's name")},
                {.name = "--dry-run",
                 .help = "only print what would change",
                 .set = switch_into(is_dry_run)},
                json_flag(as_json),
                client.flag()},
      .footer =
          "VIPs and instances that the file has not are removed; connections that are open\n"
          "to them stay until they end. A file with a mistake changes nothing.\n"
          "\n"
          "Exit status: 0 applied; 1 refused or no balancer; 2 wrong usage or file."};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  if (file.empty()) return usage_error(command.name, "which VIPs? Give -f FILE");
  const auto text = text_of(file);
  if (!text) return lb_failed(command.name, text.error());
  const auto vips = read_vips(file == "-" ? "stdin" : file, *text);
  if (!vips) return lb_failed(command.name, vips.error());
  const auto changes = client.replace(*vips, is_dry_run);
  if (!changes) return lb_failed(command.name, changes.error());
  print_changes(*changes, is_dry_run, as_json);
  return kExitDone;
}

int run_lb_check(const Arguments& arguments) {
  LbGiven given;
  bool as_json = false;
  CommandLine command{.name = "ballast lb check",
                      .summary =
                          "says whether a balancer's configuration is good, without "
                          "starting anything",
                      .flags = lb_flags(given)};
  command.flags.push_back(json_flag(as_json));
  if (const auto status = parse_command_line(command, arguments)) return *status;
  const auto config = load_lb_config(given);
  if (!config) return usage_error(command.name, config.error().message);
  size_t instances = 0;
  for (const model::Vip& vip : config->vips) instances += vip.instances.size();
  const std::string text =
      as_json ? json{{"good", true}, {"vips", config->vips.size()}, {"instances", instances}}.dump()
              : fmt::format("good: {} VIPs, {} instances", config->vips.size(), instances);
  std::printf("%s\n", text.c_str());
  return kExitDone;
}

int run_lb_drain(const Arguments& arguments) {
  return run_operation("ballast lb drain",
                       "nothing new goes to an instance; what is open stays with it",
                       model::Operation::kDrain, arguments);
}

int run_lb_undrain(const Arguments& arguments) {
  return run_operation("ballast lb undrain", "ends drain or maintenance of an instance",
                       model::Operation::kUp, arguments);
}

int run_lb_maintain(const Arguments& arguments) {
  return run_operation("ballast lb maintain",
                       "takes an instance out at once; what is open is reset by another",
                       model::Operation::kMaintenance, arguments);
}

}  // namespace ballast::app
