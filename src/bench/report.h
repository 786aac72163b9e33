// SPDX-License-Identifier: Apache-2.0
// What a run measured, and its two forms: a table for people, JSON for programs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "bench/keys.h"
#include "bench/settings.h"
#include "bench/verifier.h"

namespace ballast::bench {

struct Results {
  double seconds = 0;     // measured
  uint64_t requests = 0;  // answered within that time, errors included
  uint64_t errors = 0;    // of them
  uint64_t misses = 0;    // reads answered by null
  uint64_t unsent = 0;    // open loop: due, but no connection had room for them
  uint64_t redrawn = 0;   // writes drawn for a connection that could not keep up
  uint64_t loaded = 0;    // keys written before
  double load_seconds = 0;
  std::map<std::string, uint64_t> error_texts;  // whole run; may hold more than `errors`
  Histogram all;                                // latencies, ns; without errors
  Histogram reads;
  Histogram writes;
  std::array<Histogram, kKeyClasses> classes;  // reads and writes
  std::vector<uint64_t> per_second;            // good replies
  bool verified = false;
  std::array<uint64_t, kFindings> findings{};  // whole run, warm-up too
  uint64_t unsure_keys = 0;

  uint64_t good() const { return requests - errors; }
  uint64_t violations() const;
};

std::string report_text(const Settings& settings, const Results& results);
std::string report_json(const Settings& settings, const Results& results);

}  // namespace ballast::bench
