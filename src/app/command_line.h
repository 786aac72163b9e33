// SPDX-License-Identifier: Apache-2.0
// One subcommand's command line: its flags as data, parsed by CLI11, its --help in one shape, and
// usage errors as one message with exit status 2. CLI11 is named only in command_line.cc.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace ballast::app {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

struct Flag {
  std::string name = {};   // "--sample", or "-c,--config"
  std::string value = {};  // what --help calls the value, e.g. "COUNT"; empty = a switch
  std::string help = {};
  std::string default_text = {};  // shown by --help; empty = nothing shown
  std::string group = {};         // heading in --help; empty = "Options"
  bool repeated = false;          // may be given several times; else the last one counts
  // Called once for each time given; a switch gets "true" or what stands after "=".
  std::function<Result<>(const std::string& text)> set = {};
};

struct CommandLine {
  std::string name = {};     // "ballast cache up"
  std::string summary = {};  // one sentence
  std::vector<Flag> flags = {};
  std::string footer = {};      // after the flags in --help
  std::string positional = {};  // what --help calls the positionals; empty = none taken
  std::vector<std::string>* rest = nullptr;  // where positionals go
};

// Arguments after the subcommand's own words. Gives the exit status when there is nothing left to
// do: --help (printed to stdout) or a usage error (one message on stderr).
std::optional<int> parse_command_line(const CommandLine& command,
                                      const std::vector<std::string>& arguments);

std::string help_text(const CommandLine& command);

// Prints "name: message" on stderr; for what is found wrong after parsing.
int usage_error(const std::string& name, const std::string& message);

}  // namespace ballast::app
