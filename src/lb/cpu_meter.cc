// SPDX-License-Identifier: Apache-2.0
#include "lb/cpu_meter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <vector>

namespace ballast::lb {
namespace {

// A small file of /proc or /sys.
Result<std::string> read_whole(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return fail_errno("read " + path, errno);
  return text.str();
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t size = std::min(line.find_first_of(" \t\n"), line.size());
    if (size > 0) words.push_back(line.substr(0, size));
    line.remove_prefix(std::min(size + 1, line.size()));
  }
  return words;
}

bool read_number(std::string_view word, int64_t& value) {
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  return error == std::errc() && stop == end;
}

Result<int64_t> number_in(const std::string& path) {
  const auto text = read_whole(path);
  if (!text) return Unexpected(text.error());
  const auto words = words_of(*text);
  int64_t value = 0;
  if (words.size() != 1 || !read_number(words[0], value))
    return fail(ErrorCode::kInvalid, path + ": not a number");
  return value;
}

double host_cores() { return static_cast<double>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))); }

}  // namespace

Result<CpuReading> parse_host_stat(std::string_view stat, long ticks_per_second) {
  const auto words = words_of(stat.substr(0, stat.find('\n')));
  // user nice system idle iowait irq softirq steal; guests are in user already.
  constexpr size_t kUsed[] = {1, 2, 3, 6, 7, 8};
  int64_t ticks = 0;
  for (const size_t at : kUsed) {
    int64_t value = 0;
    if (words.size() <= at || words[0] != "cpu" || !read_number(words[at], value))
      return fail(ErrorCode::kInvalid, "/proc/stat: no line of all processors' times");
    ticks += value;
  }
  return CpuReading{ticks * (kSecond / ticks_per_second), host_cores()};
}

Result<Nanos> parse_group_stat(std::string_view stat) {
  const auto words = words_of(stat);
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    int64_t value = 0;
    if (words[i] == "usage_usec" && read_number(words[i + 1], value)) return value * kMicrosecond;
  }
  return fail(ErrorCode::kInvalid, "cpu.stat: no usage_usec");
}

Result<double> parse_group_limit(std::string_view max, double host) {
  const auto words = words_of(max);
  int64_t quota = 0;
  int64_t period = 0;
  if (words.size() != 2 || !read_number(words[1], period) || period <= 0)
    return fail(ErrorCode::kInvalid, "cpu.max: no quota and period");
  if (words[0] == "max") return host;
  if (!read_number(words[0], quota) || quota <= 0)
    return fail(ErrorCode::kInvalid, "cpu.max: no quota and period");
  return std::min(host, static_cast<double>(quota) / static_cast<double>(period));
}

Result<CpuMeter> CpuMeter::of_host() {
  CpuMeter meter(Kind::kHost);
  meter.usage_ = "/proc/stat";
  const auto reading = meter.read();
  if (!reading) return Unexpected(reading.error());
  return meter;
}

Result<CpuMeter> CpuMeter::of_group(const std::string& group, const std::string& root) {
  CpuMeter second(Kind::kVersion2);
  for (const char* mount : {"", "/unified"}) {
    second.usage_ = root + mount + group + "/cpu.stat";
    second.limit_ = root + mount + group + "/cpu.max";
    if (second.read()) return second;
  }
  CpuMeter first(Kind::kVersion1);
  for (const char* mount : {"/cpu,cpuacct", "/cpuacct"}) {
    first.usage_ = root + mount + group + "/cpuacct.usage";
    const std::string cpu = root + (mount == std::string("/cpuacct") ? "/cpu" : mount) + group;
    first.quota_ = cpu + "/cpu.cfs_quota_us";
    first.period_ = cpu + "/cpu.cfs_period_us";
    if (first.read()) return first;
  }
  return fail(ErrorCode::kInvalid,
              fmt::format("no control group {}: neither {}{}/cpu.stat with usage_usec (version 2) "
                          "nor {}/cpuacct{}/cpuacct.usage (version 1)",
                          group, root, group, root, group));
}

Result<CpuReading> CpuMeter::read() const {
  if (kind_ == Kind::kVersion1) {
    const auto used = number_in(usage_);
    if (!used) return Unexpected(used.error());
    const auto quota = number_in(quota_);
    const auto period = number_in(period_);
    const bool limited = quota && period && *quota > 0 && *period > 0;
    return CpuReading{*used, limited ? std::min(host_cores(), static_cast<double>(*quota) /
                                                                  static_cast<double>(*period))
                                     : host_cores()};
  }
  const auto text = read_whole(usage_);
  if (!text) return Unexpected(text.error());
  if (kind_ == Kind::kHost) return parse_host_stat(*text, sysconf(_SC_CLK_TCK));
  const auto used = parse_group_stat(*text);
  if (!used) return Unexpected(used.error());
  // The root group has no cpu.max.
  const auto max = read_whole(limit_);
  const auto cores = max ? parse_group_limit(*max, host_cores()) : Result<double>(host_cores());
  if (!cores) return Unexpected(cores.error());
  return CpuReading{*used, *cores};
}

}  // namespace ballast::lb
