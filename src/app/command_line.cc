// SPDX-License-Identifier: Apache-2.0
#include "app/command_line.h"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/units.h"

namespace ballast::app {
namespace {

constexpr size_t kHelpColumn = 34;
constexpr size_t kHelpWidth = 100;

std::string wrapped(const std::string& text) {
  std::string out;
  size_t column = kHelpColumn;
  size_t from = 0;
  while (from < text.size()) {
    const size_t space = std::min(text.find(' ', from), text.size());
    const size_t length = space - from;
    if (column + length + 1 > kHelpWidth && column > kHelpColumn) {
      out += "\n" + std::string(kHelpColumn, ' ');
      column = kHelpColumn;
    } else if (column > kHelpColumn) {
      out += ' ';
      ++column;
    }
    out.append(text, from, length);
    column += length;
    from = space + 1;
  }
  return out;
}

std::string flag_line(const Flag& flag) {
  std::string left = "  " + flag.name;
  if (const size_t comma = left.find(','); comma != std::string::npos) left.insert(comma + 1, " ");
  if (!flag.value.empty()) left += " " + flag.value;
  std::string help = flag.help;
  if (flag.repeated) help += "; may be repeated";
  if (!flag.default_text.empty()) help += " [" + flag.default_text + "]";
  const std::string gap = left.size() + 2 > kHelpColumn
                              ? "\n" + std::string(kHelpColumn, ' ')
                              : std::string(kHelpColumn - left.size(), ' ');
  return left + gap + wrapped(help) + "\n";
}

std::string long_name(const Flag& flag) { return flag.name.substr(flag.name.find("--")); }

std::string unknown_message(const CommandLine& command, const std::vector<std::string>& extras) {
  const std::string word = extras.front().substr(0, extras.front().find('='));
  if (word.empty() || word.front() != '-') {
    return fmt::format("unexpected argument \"{}\"", extras.front());
  }
  std::vector<std::string> names{"--help"};
  for (const Flag& flag : command.flags) names.push_back(long_name(flag));
  const std::string near = nearest(word, names);
  return near.empty() ? fmt::format("unknown option {}", word)
                      : fmt::format("unknown option {}; did you mean {}?", word, near);
}

struct Given {
  const Flag* flag;
  std::vector<std::string> values;
};

void declare(CLI::App& app, std::vector<Given>& given) {
  for (Given& each : given) {
    const Flag& flag = *each.flag;
    CLI::Option* option = nullptr;
    if (flag.value.empty()) {
      option = app.add_flag(flag.name, each.values);
    } else {
      option = app.add_option(flag.name, each.values)->expected(1)->allow_extra_args(false);
    }
    option->multi_option_policy(flag.repeated ? CLI::MultiOptionPolicy::TakeAll
                                              : CLI::MultiOptionPolicy::TakeLast);
  }
}

}  // namespace

std::string help_text(const CommandLine& command) {
  std::string out =
      fmt::format("{}: {}\n\nUsage: {} [OPTIONS]{}{}\n", command.name, command.summary,
                  command.name, command.positional.empty() ? "" : " ", command.positional);
  std::vector<std::string> groups;
  for (const Flag& flag : command.flags) {
    if (std::find(groups.begin(), groups.end(), flag.group) == groups.end()) {
      groups.push_back(flag.group);
    }
  }
  for (const std::string& group : groups) {
    out += fmt::format("\n{}:\n", group.empty() ? "Options" : group);
    for (const Flag& flag : command.flags) {
      if (flag.group == group) out += flag_line(flag);
    }
  }
  if (groups.empty()) out += "\nOptions:\n";
  out += flag_line(Flag{"-h,--help", "", "print this and leave", "", "", false, {}});
  if (!command.footer.empty()) out += "\n" + command.footer + "\n";
  return out;
}

int usage_error(const std::string& name, const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", name.c_str(), message.c_str());
  return kExitUsage;
}

std::optional<int> parse_command_line(const CommandLine& command,
                                      const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag("-h,--help");
  std::vector<Given> given;
  for (const Flag& flag : command.flags) given.push_back({&flag, {}});
  declare(app, given);
  if (command.rest != nullptr) app.add_option("rest", *command.rest);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    std::fputs(help_text(command).c_str(), stdout);
    return kExitDone;
  } catch (const CLI::ExtrasError&) {
    return usage_error(command.name, unknown_message(command, app.remaining()) +
                                         fmt::format(" (see {} --help)", command.name));
  } catch (const CLI::ParseError& error) {
    return usage_error(command.name, fmt::format("{} (see {} --help)", error.what(), command.name));
  }
  for (const Given& each : given) {
    for (const std::string& value : each.values) {
      if (const Result<> set = each.flag->set(value); !set) {
        return usage_error(command.name,
                           fmt::format("{}: {}", long_name(*each.flag), set.error().message));
      }
    }
  }
  return std::nullopt;
}

}  // namespace ballast::app
