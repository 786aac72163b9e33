// SPDX-License-Identifier: Apache-2.0
// One line of what MONITOR prints, as redis-cli shows it or as it stands in the protocol.
// Source: replicationFeedMonitors() of redis 7.0 and sdscatrepr(), whose escapes are undone here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace ballast::proto {

class MonitorLine {
 public:
  // The line without its end; `cut`: its end is missing, so what cannot be completed is dropped.
  // False if it is not a line of MONITOR.
  bool parse(std::string_view line, bool cut = false);

  // Good until the next parse().
  std::span<const std::string_view> args() const { return args_; }
  Nanos time() const { return time_; }  // wall time
  int64_t database() const { return database_; }
  // A command that a script ran inside the server; the script's own call has a line too.
  bool by_script() const { return by_script_; }

 private:
  bool parse_head(std::string_view& line);
  bool parse_time(std::string_view& line);
  bool parse_args(std::string_view line, bool cut);
  bool parse_arg(std::string_view& line);

  Nanos time_ = 0;
  int64_t database_ = 0;
  bool by_script_ = false;
  std::string text_;
  std::vector<std::string_view> args_;
};

}  // namespace ballast::proto
