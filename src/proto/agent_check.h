// SPDX-License-Identifier: Apache-2.0
// HAProxy's agent-check text: an instance's agent answers a TCP connection with one line of words,
// e.g. "75% up" (HAProxy's configuration manual, "agent-check").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ballast::proto {

struct AgentCheck {
  enum class Admin : uint8_t { kReady, kDrain, kMaintenance };
  enum class Health : uint8_t { kUp, kDown };

  std::optional<double> weight = {};  // 1 for "100%"
  std::optional<uint32_t> most_connections = {};
  std::optional<Admin> admin = {};
  std::optional<Health> health = {};
  std::string reason = {};  // what stands behind '#'

  bool operator==(const AgentCheck&) const = default;
};

// `text` up to the first CR or LF, without which it is not complete. Words are separated by blanks,
// tabs or commas; the last one of a kind counts. Fails on a word that is none of them.
Result<AgentCheck> parse_agent_check(std::string_view text);

}  // namespace ballast::proto
