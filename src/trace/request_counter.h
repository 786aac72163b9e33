// SPDX-License-Identifier: Apache-2.0
// Turns commands as clients sent them into counts of keys: which arguments are keys, which command
// writes, is what a server's COMMAND says.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "proto/command_table.h"
#include "trace/key_counts.h"
#include "trace/workload.h"

namespace ballast::trace {

// Of redis 7.0.15, from its own reply to COMMAND.
const proto::CommandTable& built_in_commands();

class RequestCounter {
 public:
  // The table must outlive the counter.
  RequestCounter(const proto::CommandTable& table, size_t most_keys)
      : table_(table), counts_(most_keys) {}

  // One command with its name; `time`: wall time, 0 if not known; `cut`: arguments are missing.
  void command(std::span<const std::string_view> args, Nanos time, bool cut = false);
  // One request to a key, of which only that is known.
  void key(std::string_view key, uint64_t count = 1) { counts_.add(key, false, count); }

  uint64_t commands() const { return commands_; }  // that the table knows
  uint64_t requests() const { return counts_.requests(); }
  // All but `form`. Notes say which commands had no part.
  void finish(Workload& workload) const;

 private:
  void note_unknown(std::string_view name);
  void note_time(Nanos time, uint64_t requests);

  const proto::CommandTable& table_;
  KeyCounts counts_;
  std::vector<proto::KeyPosition> positions_;
  uint64_t commands_ = 0;
  uint64_t refused_ = 0;      // with so many arguments as the server would refuse
  uint64_t keys_hidden_ = 0;  // commands whose keys cannot be told from here
  uint64_t kept_reads_ = 0;
  uint64_t other_reads_ = 0;
  uint64_t writes_ = 0;
  uint64_t unknown_ = 0;
  std::map<std::string, uint64_t, std::less<>> unknown_names_;
  Nanos first_ = 0;
  Nanos last_ = 0;
  Nanos second_ = 0;  // the one being counted
  uint64_t in_second_ = 0;
  uint64_t busiest_ = 0;
};

}  // namespace ballast::trace
