// SPDX-License-Identifier: Apache-2.0
#include "lb/ager.h"

#include <netinet/in.h>
#include <time.h>

#include <utility>

namespace ballast::lb {

uint64_t monotonic_ns() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return static_cast<uint64_t>(ts.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(ts.tv_nsec);
}

uint64_t idle_limit_ns(const bl_flow_key& flow, const bl_connection& connection,
                       const AgeLimits& limits) {
  if (flow.protocol != IPPROTO_TCP) return limits.udp_ns;
  const bool is_closing = connection.state >= BL_CONNECTION_CLOSING;
  return is_closing ? limits.tcp_closing_ns : limits.tcp_open_ns;
}

bool is_over(const bl_flow_key& flow, const bl_connection& connection, const AgeLimits& limits,
             uint64_t now_ns) {
  // A packet may have come since `now_ns` was read.
  return connection.last_seen_ns < now_ns &&
         now_ns - connection.last_seen_ns > idle_limit_ns(flow, connection, limits);
}

Ager::Ager(const loader::LbProgram& program, AgeLimits limits)
    : program_(program),
      limits_(limits),
      counting_(BL_MOST_INSTANCES),
      counted_(BL_MOST_INSTANCES) {}

uint32_t Ager::open_of(uint32_t instance) const { return counted_[instance].open; }
uint32_t Ager::entries_of(uint32_t instance) const { return counted_[instance].entries; }

void Ager::end_pass() {
  counted_.swap(counting_);
  counting_.assign(counting_.size(), {});
  entries_ = 0;
  for (const Count& count : counted_) entries_ += count.entries;
  ++passes_;
}

Result<bool> Ager::step(uint32_t count) {
  const auto connections = program_.connections();
  const uint64_t now_ns = monotonic_ns();
  std::vector<bl_flow_key> over;
  const Result<> stepped = connections.step(
      place_, count, [&](const bl_flow_key& flow, const bl_connection& connection) {
        if (is_over(flow, connection, limits_, now_ns)) {
          over.push_back(flow);
        } else if (connection.instance < counting_.size()) {
          Count& of = counting_[connection.instance];
          ++of.entries;
          of.open += connection.state < BL_CONNECTION_CLOSING ? 1 : 0;
        }
      });
  if (!stepped) return Unexpected(stepped.error());
  for (const bl_flow_key& flow : over) {
    // It may have been used since.
    const auto again = connections.get(flow);
    if (!again) return Unexpected(again.error());
    if (!*again || !is_over(flow, **again, limits_, now_ns)) continue;
    const auto removed = program_.remove_connection(flow);
    if (!removed) return Unexpected(removed.error());
    aged_ += *removed ? 1 : 0;
  }
  if (place_) return false;
  end_pass();
  return true;
}

}  // namespace ballast::lb
