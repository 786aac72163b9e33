// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of the coherence protocol each, to prove that the tests notice. All
// are off in a product build and cost nothing there; the programs ballast-without-<rule> of
// tests/faults have one turned on, BALLAST_SABOTAGE_SWITCHES makes them variables of a test.
#pragma once

namespace ballast::cache {

struct Sabotage {
  bool skip_phase1 = false;          // a write does not invalidate copies
  bool skip_lease_wait = false;      // a write does not wait for holders that have not answered
  bool ignore_fill_version = false;  // neither end compares the versions of a fill
  bool ignore_copy_id = false;       // a node takes a fill meant for an earlier copy
  bool revive_lapsed = false;        // a node keeps its copies over the end of its lease
  bool skip_takeover_wait = false;   // a new home does not wait for the former one's leases
  bool lease_without_ping = false;   // a lease is granted without a round trip to the shard
  bool read_during_write = false;    // a fill is read while a write is waiting or in flight
  bool keep_on_drop_all = false;     // a node keeps its copies at DropAll
  bool count_from_grant = false;     // a node counts its lease from the answer, not the request

  constexpr bool any() const {
    return skip_phase1 || skip_lease_wait || ignore_fill_version || ignore_copy_id ||
           revive_lapsed || skip_takeover_wait || lease_without_ping || read_during_write ||
           keep_on_drop_all || count_from_grant;
  }
};

#if defined(BALLAST_SABOTAGE_SWITCHES)
inline Sabotage sabotage;
#elif defined(BALLAST_SABOTAGE_PHASE1)
inline constexpr Sabotage sabotage{.skip_phase1 = true};
#elif defined(BALLAST_SABOTAGE_LEASE_WAIT)
inline constexpr Sabotage sabotage{.skip_lease_wait = true};
#elif defined(BALLAST_SABOTAGE_FILL_VERSION)
inline constexpr Sabotage sabotage{.ignore_fill_version = true, .ignore_copy_id = true};
#elif defined(BALLAST_SABOTAGE_COPY_ID)
inline constexpr Sabotage sabotage{.ignore_copy_id = true};
#elif defined(BALLAST_SABOTAGE_REVIVE)
inline constexpr Sabotage sabotage{.revive_lapsed = true};
#else
inline constexpr Sabotage sabotage{};
#endif

}  // namespace ballast::cache
