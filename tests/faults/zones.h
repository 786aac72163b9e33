// SPDX-License-Identifier: Apache-2.0
// The zones of Gibbons and Korach ("Testing Shared Memories", 1997): with unique values, a write
// and the reads of its value are one cluster, and where each cluster must hold the register follows
// from its earliest response and its latest invocation alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "linearizability.h"

namespace ballast::faults {

// Indexes are into the operations the clusters were made from.
struct Cluster {
  size_t write = 0;
  std::vector<size_t> reads;
  size_t first_responder = 0;
  size_t last_invoker = 0;
  Nanos first_response_ns = kNever;
  Nanos last_invoke_ns = 0;
  Nanos expires_from_ns = kNever;  // kNever without a time to live
  Nanos expires_until_ns = kNever;

  // Forward: the register holds the value from first_response to last_invoke without a break.
  // Otherwise one instant between last_invoke and first_response is enough.
  bool is_forward() const { return first_response_ns < last_invoke_ns; }
};

// May empty the register at any time after `from_ns`, or never: a delete of unknown outcome, or a
// write of unknown outcome that nobody read and whose time to live may be over by then.
struct LateDelete {
  size_t operation = 0;
  Nanos from_ns = 0;
};

struct Zones {
  std::vector<Cluster> forward;   // by first_response_ns
  std::vector<Cluster> backward;  // likewise
  std::vector<size_t> nil_reads;
  std::vector<size_t> deletes;  // of known outcome
  std::vector<LateDelete> late_deletes;
};

struct Contradiction {
  std::string reason;
  std::vector<size_t> operations;
};

// Reads of unknown outcome say nothing and are left out; so are writes of unknown outcome that
// nobody read, but for their expiry. One that was read has taken effect before that read's
// response.
std::optional<Contradiction> make_zones(const std::vector<Operation>& operations,
                                        const CheckOptions& options, Zones& zones);

// What two clusters, or a cluster and a delete or a read of nil, say against each other.
std::optional<Contradiction> find_conflict(const std::vector<Operation>& operations,
                                           const Zones& zones);

}  // namespace ballast::faults
