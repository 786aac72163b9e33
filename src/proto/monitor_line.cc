// SPDX-License-Identifier: Apache-2.0
#include "proto/monitor_line.h"

#include <algorithm>

#include "proto/escape.h"
#include "proto/resp_number.h"

namespace ballast::proto {
namespace {

constexpr size_t kMostFraction = 9;
constexpr int64_t kMostSeconds = 9'000'000'000;  // as nanoseconds within 63 bits

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

}  // namespace

bool MonitorLine::parse(std::string_view line, bool cut) {
  args_.clear();
  text_.clear();
  text_.reserve(line.size());  // undoing escapes never lengthens, so the views stay good
  if (line.starts_with('+')) line.remove_prefix(1);
  return parse_time(line) && parse_head(line) && parse_args(line, cut);
}

// "1339518083.107412 "
bool MonitorLine::parse_time(std::string_view& line) {
  const size_t end = line.find(' ');
  const size_t dot = line.substr(0, end).find('.');
  if (end == std::string_view::npos || dot == std::string_view::npos) return false;
  const std::string_view fraction = line.substr(dot + 1, end - dot - 1);
  int64_t seconds = 0;
  if (dot > 10 || fraction.empty() || fraction.size() > kMostFraction ||
      !parse_integer(line.substr(0, dot), seconds) || seconds < 0 || seconds > kMostSeconds ||
      !std::all_of(fraction.begin(), fraction.end(), is_digit)) {
    return false;
  }
  Nanos part = 0;
  for (size_t i = 0; i < kMostFraction; ++i)
    part = part * 10 + (i < fraction.size() ? fraction[i] - '0' : 0);
  time_ = seconds * kSecond + part;
  line.remove_prefix(end + 1);
  return true;
}

// "[0 127.0.0.1:60866] ", "[0 lua] ", "[0 unix:/a path] "
bool MonitorLine::parse_head(std::string_view& line) {
  const size_t end = line.find("] \"");
  const size_t space = line.substr(0, end).find(' ');
  if (!line.starts_with('[') || end == std::string_view::npos || space == std::string_view::npos ||
      !parse_integer(line.substr(1, space - 1), database_)) {
    return false;
  }
  by_script_ = line.substr(space + 1, end - space - 1) == "lua";
  line.remove_prefix(end + 2);
  return true;
}

bool MonitorLine::parse_args(std::string_view line, bool cut) {
  while (!line.empty()) {
    if (!args_.empty()) {
      if (line[0] != ' ') return false;
      line.remove_prefix(1);
    }
    if (!parse_arg(line)) {
      // What is left is the beginning of an argument whose end was cut off.
      return cut && !args_.empty() && (line.empty() || line[0] == '"');
    }
  }
  return !args_.empty();
}

bool MonitorLine::parse_arg(std::string_view& line) {
  if (!line.starts_with('"')) return false;
  const size_t start = text_.size();
  for (size_t at = 1; at < line.size(); ++at) {
    if (line[at] == '"') {
      args_.emplace_back(text_.data() + start, text_.size() - start);
      line.remove_prefix(at + 1);
      return true;
    }
    if (line[at] != '\\') {
      text_ += line[at];
      continue;
    }
    if (++at == line.size()) break;
    if (line[at] == 'x' && at + 2 < line.size() && hex_digit(line[at + 1]) >= 0 &&
        hex_digit(line[at + 2]) >= 0) {
      text_ += static_cast<char>(hex_digit(line[at + 1]) * 16 + hex_digit(line[at + 2]));
      at += 2;
    } else {
      text_ += unescape(line[at]);
    }
  }
  text_.resize(start);
  return false;
}

}  // namespace ballast::proto
