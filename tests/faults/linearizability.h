// SPDX-License-Identifier: Apache-2.0
// Decides whether what the clients of one key saw can have come from one register: every operation
// taking effect at one instant between its invocation and its response. Values written are unique.
// Start here: check_key(), or History for many keys and flushes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace ballast::faults {

using Value = int64_t;
inline constexpr Value kNil = 0;
// The response of an operation whose outcome is unknown: it may take effect at any time after its
// invocation, or never.
inline constexpr Nanos kNever = INT64_MAX;

enum class OpKind { kRead, kWrite, kDelete };

struct Operation {
  OpKind kind = OpKind::kRead;
  Value value = kNil;     // read: what was returned; write: what was written, never kNil
  Nanos invoke_ns = 0;    // a clock read before the request left
  Nanos response_ns = 0;  // a clock read after the reply came, or kNever
  Nanos ttl_ns = 0;       // write: time to live, 0 for none
  int32_t session = 0;    // whose operation, for the explanation only
  bool is_flush = false;  // a delete that was a FLUSHALL, for the explanation only
};

struct CheckOptions {
  // A value with a time to live may vanish from invoke + ttl - slack on and must be gone by
  // response + ttl + slack: servers count whole milliseconds.
  Nanos expiry_slack_ns = 5 * kMillisecond;
};

struct Violation {
  std::string key;
  std::string reason;             // one sentence
  std::vector<Operation> window;  // the few operations that contradict each other, by invocation
};

// The register holds kNil before the first operation. Takes time about n log n.
std::optional<Violation> check_key(std::string_view key, const std::vector<Operation>& operations,
                                   const CheckOptions& options = {});

// The reason and one line an operation, times in milliseconds after the window's first.
std::string describe(const Violation& violation);

// The operations of many keys; a flush is a delete of each of them.
class History {
 public:
  void add(const std::string& key, const Operation& operation);
  void add_flush(Nanos invoke_ns, Nanos response_ns, int32_t session);
  size_t operations() const { return operations_; }
  std::vector<Violation> check(const CheckOptions& options = {}) const;

 private:
  std::map<std::string, std::vector<Operation>> keys_;
  std::vector<Operation> flushes_;
  size_t operations_ = 0;
};

}  // namespace ballast::faults
