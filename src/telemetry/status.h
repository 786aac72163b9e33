// SPDX-License-Identifier: Apache-2.0
// What /status says and `ballast cache status` reads: the JSON's shape, defined once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ballast::telemetry {

struct ShardStatus {
  std::string name;  // host:port
  std::string rack;
  bool up = false;
  uint64_t requests = 0;
  double rate = 0;    // requests a second in the last window
  std::string error;  // why it is not up; empty if it is
};

struct NodeStatus {
  std::string name;
  std::string layer;  // leaf or spine
  uint64_t copies = 0;
  uint64_t bytes = 0;
  uint64_t load = 0;  // requests in the last window
  uint64_t requests = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  bool lease_ok = false;  // every shard's lease runs
};

struct RouterStatus {
  uint64_t clients = 0;
  uint64_t requests = 0;
  double hit_ratio = 0;  // reads answered by a copy over all reads, 0 to 1
  uint64_t cold_reads = 0;
  uint64_t writes = 0;
};

struct HotKey {
  std::string key;  // raw bytes here; escaped as printable() in the JSON
  std::string node;
  uint64_t count = 0;
};

struct Status {
  std::string tier;
  std::string role;
  double uptime_seconds = 0;
  bool ready = false;
  std::vector<ShardStatus> shards;
  std::vector<NodeStatus> nodes;
  RouterStatus router;
  std::vector<HotKey> hottest;
};

std::string to_json(const Status& status);
// HotKey::key stays escaped. Fields that are not there keep their defaults.
Result<Status> parse_status(std::string_view json);

// Keys are bytes: what is not printable ASCII, and the backslash, becomes \xHH; at most 128
// characters, then "...".
std::string printable(std::string_view key);

}  // namespace ballast::telemetry
