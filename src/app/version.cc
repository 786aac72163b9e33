// SPDX-License-Identifier: Apache-2.0
// ballast version.
#include <cstdio>

#include "app/command_line.h"
#include "app/subcommand.h"
#include "telemetry/build_info.h"

namespace ballast::app {

int run_version(const Arguments& arguments) {
  bool json = false;
  const CommandLine command{
      .name = "ballast version",
      .summary = "prints the version",
      .flags = {{.name = "--json", .help = "as JSON", .set = [&](const std::string&) -> Result<> {
                   json = true;
                   return {};
                 }}}};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  const telemetry::BuildInfo& build = telemetry::build_info();
  if (json) {
    std::printf("{\"version\":\"%s\",\"compiler\":\"%s\",\"build_type\":\"%s\"}\n", build.version,
                build.compiler, build.type);
  } else {
    std::printf("ballast %s (%s, %s)\n", build.version, build.compiler, build.type);
  }
  return kExitDone;
}

}  // namespace ballast::app
