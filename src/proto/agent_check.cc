// SPDX-License-Identifier: Apache-2.0
#include "proto/agent_check.h"

#include <algorithm>
#include <charconv>

namespace ballast::proto {
namespace {

constexpr uint32_t kMostPercent = 25'600;  // HAProxy's weights end at 256 times the least
constexpr size_t kMostShown = 40;

bool read_number(std::string_view digits, uint32_t& value) {
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  return error == std::errc() && stop == end;
}

bool read_state(std::string_view name, AgentCheck& check) {
  if (name == "ready") {
    check.admin = AgentCheck::Admin::kReady;
  } else if (name == "drain") {
    check.admin = AgentCheck::Admin::kDrain;
  } else if (name == "maint") {
    check.admin = AgentCheck::Admin::kMaintenance;
  } else if (name == "up") {
    check.health = AgentCheck::Health::kUp;
  } else if (name == "down" || name == "failed" || name == "stopped") {
    check.health = AgentCheck::Health::kDown;
  } else {
    return false;
  }
  return true;
}

bool read_word(std::string_view word, AgentCheck& check) {
  constexpr std::string_view kMaxconn = "maxconn:";
  uint32_t number = 0;
  if (word.ends_with('%')) {
    if (!read_number(word.substr(0, word.size() - 1), number) || number > kMostPercent)
      return false;
    check.weight = number / 100.0;
    return true;
  }
  if (word.starts_with(kMaxconn)) {
    if (!read_number(word.substr(kMaxconn.size()), number)) return false;
    check.most_connections = number;
    return true;
  }
  return read_state(word, check);
}

}  // namespace

Result<AgentCheck> parse_agent_check(std::string_view text) {
  const size_t end = text.find_first_of("\r\n");
  if (end == std::string_view::npos) return fail(ErrorCode::kInvalid, "no end of line");
  AgentCheck check;
  bool any = false;
  std::string_view rest = text.substr(0, end);
  if (const size_t hash = rest.find('#'); hash != std::string_view::npos) {
    check.reason = rest.substr(hash + 1);
    rest = rest.substr(0, hash);
  }
  while (!rest.empty()) {
    const size_t size = std::min(rest.find_first_of(" \t,"), rest.size());
    const std::string_view word = rest.substr(0, size);
    rest.remove_prefix(std::min(size + 1, rest.size()));
    if (word.empty()) continue;
    if (!read_word(word, check)) {
      return fail(ErrorCode::kInvalid, "not a word of an agent-check: \"" +
                                           std::string(word.substr(0, kMostShown)) + "\"");
    }
    any = true;
  }
  if (!any) return fail(ErrorCode::kInvalid, "an empty line");
  return check;
}

}  // namespace ballast::proto
