// SPDX-License-Identifier: Apache-2.0
// A writer that goes to a shard directly, past the tier. Its writes reach readers late by some
// milliseconds; how late is measured, not judged.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "session.h"

namespace ballast::faults {

struct Staleness {
  uint64_t reads = 0;
  uint64_t stale_reads = 0;  // begun after a newer value had been acknowledged
  double p99_ms = 0;         // over all reads, a fresh one counting 0
  double max_ms = 0;
};

class Bypass {
 public:
  // Finds `keys` keys that live on the shard, by writing through `router` and looking there.
  static Result<Bypass> create(const WorkloadOptions& options, const Endpoint& shard, int keys);

  const std::vector<std::string>& keys() const { return keys_; }
  // Writes one key after the other until progress.stop.
  void run(const WorkloadOptions& options, const Progress& progress);
  // `reads` are the sessions' records of keys().
  Staleness measure(const std::vector<Record>& reads) const;

 private:
  Bypass(Endpoint shard, std::vector<std::string> keys)
      : shard_(std::move(shard)), keys_(std::move(keys)) {}

  Endpoint shard_;
  std::vector<std::string> keys_;
  // By key: when value number i was acknowledged.
  std::map<std::string, std::vector<Nanos>> acknowledged_ns_;
};

}  // namespace ballast::faults
