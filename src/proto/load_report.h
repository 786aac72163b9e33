// SPDX-License-Identifier: Apache-2.0
// How an instance's agent tells a balancer its load: one UDP datagram asks, one answers, both with
// a truncated HMAC-SHA-256 (RFC 2104) under a secret that the two share. The answer repeats the
// question's nonce, so that nothing recorded earlier passes for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ballast::proto {

// What is not measured is not there.
struct LoadReport {
  uint64_t incarnation = 0;                   // of the agent, random at its start
  uint64_t number = 0;                        // of its answers, from 1
  std::optional<double> utilisation = {};     // of the capacity, 0 to 1
  std::optional<double> cores = {};           // the capacity
  std::optional<uint32_t> connections = {};   // established with the instance
  std::optional<uint32_t> accept_queue = {};  // complete but not accepted yet
  std::optional<uint32_t> latency_us = {};    // of a request of the agent's own

  bool operator==(const LoadReport&) const = default;
};

inline constexpr size_t kLoadRequestSize = 28;
inline constexpr size_t kLoadReportSize = 68;

std::string encode_load_request(uint64_t nonce, std::string_view secret);
// The nonce; nothing is answered to what fails.
Result<uint64_t> decode_load_request(std::string_view datagram, std::string_view secret);

std::string encode_load_report(const LoadReport& report, uint64_t nonce, std::string_view secret);
// Fails for what is no report, forged, an answer to another question, or says what cannot be.
Result<LoadReport> decode_load_report(std::string_view datagram, uint64_t nonce,
                                      std::string_view secret);

}  // namespace ballast::proto
