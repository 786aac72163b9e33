// SPDX-License-Identifier: Apache-2.0
// What a run of the load generator is asked to do, as plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/tier.h"

namespace ballast::bench {

enum class Spread { kZipf, kUniform, kHotspot, kReplay };

struct Settings {
  std::vector<model::Endpoint> targets;  // connections go to them in turn
  uint32_t write_targets = 0;            // only the first so many get writes; 0 = all
  uint32_t keys = 100'000;
  Spread spread = Spread::kZipf;
  double alpha = 0.99;      // kZipf
  double hot_reads = 0;     // kHotspot: this share of the requests ...
  double hot_keys = 0;      // ... goes to this share of the keys
  std::string replay_file;  // kReplay: one key a line
  double writes = 0;        // share of the requests, 0 to 1
  uint32_t value_min = 64;  // bytes, both ends included
  uint32_t value_max = 64;
  uint32_t connections = 50;
  uint32_t pipeline = 1;  // requests in flight on one connection, at most
  double seconds = 10;    // measured; 0 = only load
  double warmup_seconds = 1;
  double rate = 0;  // requests a second, due at even distances; 0 = closed loop
  bool resp3 = false;
  bool verify = false;
  bool load = false;     // write every key once before anything else
  std::string password;  // empty = none
  uint64_t seed = 0;
};

}  // namespace ballast::bench
