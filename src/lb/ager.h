// SPDX-License-Identifier: Apache-2.0
// Goes through the connection table in steps: deletes what has been idle for too long, and counts
// what each instance has open. The packet path deletes nothing by age.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "loader/lb_program.h"

namespace ballast::lb {

// How long nothing may pass. The balancer sees the client's half only, so a connection that the
// client closed may still be closing.
struct AgeLimits {
  uint64_t tcp_open_ns = 0;
  uint64_t tcp_closing_ns = 0;  // after a FIN or an RST
  uint64_t udp_ns = 0;
};

// Of CLOCK_MONOTONIC, as an entry's time.
uint64_t monotonic_ns();
// After which it is to be deleted. Pure.
uint64_t idle_limit_ns(const bl_flow_key& flow, const bl_connection& connection,
                       const AgeLimits& limits);
// Whether an entry is to be deleted. Pure.
bool is_over(const bl_flow_key& flow, const bl_connection& connection, const AgeLimits& limits,
             uint64_t now_ns);

class Ager {
 public:
  Ager(const loader::LbProgram& program, AgeLimits limits);

  // Looks at the next `count` entries or fewer. True: this was the last step of a pass.
  Result<bool> step(uint32_t count);

  const AgeLimits& limits() const { return limits_; }
  bool is_within_pass() const { return place_.has_value(); }

  // Of the last whole pass; 0 before the first.
  uint64_t passes() const { return passes_; }
  uint32_t entries() const { return entries_; }  // in the table
  uint32_t open_of(uint32_t instance) const;     // those not closed by the client
  uint32_t entries_of(uint32_t instance) const;  // all
  uint64_t aged() const { return aged_; }        // deleted since the start

 private:
  struct Count {
    uint32_t entries = 0;
    uint32_t open = 0;
  };
  void end_pass();

  const loader::LbProgram& program_;
  AgeLimits limits_;
  std::optional<uint32_t> place_;
  std::vector<Count> counting_;
  std::vector<Count> counted_;
  uint32_t entries_ = 0;
  uint64_t passes_ = 0;
  uint64_t aged_ = 0;
};

}  // namespace ballast::lb
