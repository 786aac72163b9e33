// SPDX-License-Identifier: Apache-2.0
#include "trace/text_trace.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "proto/monitor_line.h"

namespace ballast::trace {
namespace {

constexpr uint64_t kProgressLines = 4096;
constexpr uint64_t kMostCount = uint64_t{1} << 53;  // exact as a double

Unexpected fail_line(const InputFile& file, uint64_t line, const std::string& what) {
  return fail(ErrorCode::kInvalid, fmt::format("{}:{}: {}", file.name(), line, what));
}

struct KeyLine {
  std::string_view key;
  uint64_t count;
};

std::optional<KeyLine> parse_key_count(std::string_view line) {
  const size_t end = line.find_last_not_of(" \t");
  if (end == std::string_view::npos) return std::nullopt;
  line = line.substr(0, end + 1);
  const size_t space = line.find_last_of(" \t");
  if (space == std::string_view::npos || space == 0) return std::nullopt;
  const std::string_view digits = line.substr(space + 1);
  uint64_t count = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || stop != digits.data() + digits.size()) return std::nullopt;
  return KeyLine{line.substr(0, space), count};
}

}  // namespace

Form text_form(std::string_view beginning) {
  size_t at = 0;
  for (; at < beginning.size(); at = beginning.find('\n', at) + 1) {
    std::string_view line = beginning.substr(at, beginning.find('\n', at) - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line == "OK" || line == "+OK") return Form::kMonitor;
    proto::MonitorLine monitor;
    // The first line may reach beyond what was looked at.
    if (monitor.parse(line, true)) return Form::kMonitor;
    if (!line.empty() || beginning.find('\n', at) == std::string_view::npos) break;
  }
  return Form::kKeys;
}

Result<> read_keys(InputFile& file, RequestCounter& counter, Workload& workload,
                   const Progress& progress) {
  workload.form = "keys";
  uint64_t sum = 0;
  std::optional<bool> with_counts;
  for (InputFile::Line line; file.next_line(line);) {
    if (line.number % kProgressLines == 0) progress(file.done(), file.size());
    if (line.cut) return fail_line(file, line.number, "a key of more than 16 MiB");
    if (line.text.empty()) continue;
    const auto counted = parse_key_count(line.text);
    if (!with_counts) {
      with_counts = counted.has_value();
      if (*with_counts) workload.form = "key counts";
    }
    if (!*with_counts) {
      counter.key(line.text);
      continue;
    }
    if (!counted) return fail_line(file, line.number, "not KEY COUNT, as the first line is");
    if (counted->count < 1 || counted->count > kMostCount - sum)
      return fail_line(file, line.number, "a count must be above 0, and all together below 2^53");
    sum += counted->count;
    counter.key(counted->key, counted->count);
  }
  return {};
}

Result<> read_monitor(InputFile& file, RequestCounter& counter, Workload& workload,
                      const Progress& progress) {
  workload.form = "monitor";
  proto::MonitorLine monitor;
  uint64_t by_script = 0;
  uint64_t other_databases = 0;
  uint64_t bad = 0;
  uint64_t first_bad = 0;
  for (InputFile::Line line; file.next_line(line);) {
    if (line.number % kProgressLines == 0) progress(file.done(), file.size());
    if (line.text.empty() || line.text == "OK" || line.text == "+OK") continue;
    if (!monitor.parse(line.text, line.cut)) {
      // A recording that was stopped ends anywhere.
      if (!line.ended) {
        workload.notes.push_back(fmt::format("line {} is cut off and was left out", line.number));
      } else if (++bad == 1) {
        first_bad = line.number;
      }
      continue;
    }
    by_script += monitor.by_script() ? 1 : 0;
    if (monitor.by_script()) continue;
    other_databases += monitor.database() != 0 ? 1 : 0;
    counter.command(monitor.args(), monitor.time(), line.cut);
  }
  if (bad > 0 && counter.commands() == 0)
    return fail_line(file, first_bad, "not a line of redis-cli MONITOR");
  if (bad > 0)
    workload.notes.push_back(
        fmt::format("{} lines, the first of them line {}, are not MONITOR's and were left out", bad,
                    first_bad));
  if (by_script > 0)
    workload.notes.push_back(fmt::format(
        "{} commands that scripts ran were left out: the scripts' own calls are counted",
        by_script));
  if (other_databases > 0)
    workload.notes.push_back(fmt::format(
        "{} commands were for other databases than 0: keys of one name are counted together",
        other_databases));
  return {};
}

}  // namespace ballast::trace
