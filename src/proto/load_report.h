// SPDX-License-Identifier: Apache-2.0
// How an instance's agent tells a balancer its load: one UDP datagram asks, one answers, both with
// a truncated HMAC-SHA-256 (RFC 2104) under a secret that the two share. The answer repeats the
// question's nonce, so that nothing recorded earlier passes for it.
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <memory>
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

// The key of the MAC, made ready once. For one thread.
class LoadSecret {
 public:
  explicit LoadSecret(std::string_view secret);
  std::string mac(std::string_view bytes) const;  // 16 bytes

 private:
  struct Free {
    void operator()(EVP_MAC_CTX* context) const;
  };
  std::unique_ptr<EVP_MAC_CTX, Free> context_;
};

inline constexpr size_t kLoadRequestSize = 28;
inline constexpr size_t kLoadReportSize = 68;

std::string encode_load_request(uint64_t nonce, const LoadSecret& secret);
// The nonce; nothing is answered to what fails.
Result<uint64_t> decode_load_request(std::string_view datagram, const LoadSecret& secret);

// Whose answer a datagram says to be, before anything else of it is looked at.
std::optional<uint64_t> load_report_nonce(std::string_view datagram);

std::string encode_load_report(const LoadReport& report, uint64_t nonce, const LoadSecret& secret);
// Fails for what is no report, forged, an answer to another question, or says what cannot be.
Result<LoadReport> decode_load_report(std::string_view datagram, uint64_t nonce,
                                      const LoadSecret& secret);

}  // namespace ballast::proto
