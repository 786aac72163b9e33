// SPDX-License-Identifier: Apache-2.0
// Checks whether instances serve: each once its interval, all spread over it, none waiting for
// another. What it finds has nothing to do with load. On one loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/socket.h"
#include "model/lb.h"

namespace ballast::lb {

struct HealthTarget {
  model::HealthCheck kind = model::HealthCheck::kTcp;  // not kNone
  io::Address address;
  std::string path = "/";  // kHttp; 2xx and 3xx are good
  Nanos interval = 500 * kMillisecond;
  Nanos timeout = 500 * kMillisecond;  // without an answer a check is bad
  uint32_t rise = 2;                   // good ones in a row until it is up again
  uint32_t fall = 2;                   // bad ones in a row until it is down
};

// kInvalid: what HealthChecks::add() would refuse.
Result<> check_target(const HealthTarget& target);

enum class Health : uint8_t { kUnknown, kDown, kUp };

struct HealthState {
  // kUnknown before the first check's end, which decides alone.
  Health health = Health::kUnknown;
  Nanos since = 0;         // when `health` became so
  std::string last_cause;  // of the last bad check, e.g. "connect: Connection refused"
  Nanos last_bad_at = 0;   // 0: none was bad
  uint64_t checks = 0;     // ended
  uint64_t bad = 0;

  bool is_up() const { return health == Health::kUp; }
};

class HealthChecks {
 public:
  // A target's health became another. May call add() and remove().
  using OnChange = std::function<void(uint32_t id, const HealthState& state)>;

  static std::unique_ptr<HealthChecks> create(io::Loop& loop, OnChange on_change);
  ~HealthChecks();

  // The first check begins at once. Equal targets are one, checked once; each add() needs its
  // remove(). `assume_up`: up until `fall` checks say otherwise, as it was before this process
  // started; ignored where the target is there already. kInvalid for what cannot be checked.
  Result<uint32_t> add(const HealthTarget& target, bool assume_up = false);
  void remove(uint32_t id);
  // Stays where it is until the target's last remove().
  const HealthState& state(uint32_t id) const;
  size_t size() const;  // different targets

 private:
  class Impl;
  explicit HealthChecks(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::lb
