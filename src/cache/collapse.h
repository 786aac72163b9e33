// SPDX-License-Identifier: Apache-2.0
// Reads of a hot key while none of its copies is good, e.g. after a write: equal ones share one
// read of the shard, so that a write does not let loose on it all that the copies kept away. A read
// joins only one that was sent after it had arrived, never one under way, which may be older than a
// write acknowledged meanwhile (I1).
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cache/request.h"
#include "cache/shard.h"
#include "telemetry/metrics.h"

namespace ballast::cache {

class Collapse {
 public:
  // A reply of more than `most_shared` bytes is not shared: each request then reads for itself.
  Collapse(RequestPool& pool, telemetry::Durations& durations, size_t most_shared)
      : pool_(pool), durations_(durations), most_shared_(most_shared) {}

  // Answers `request`, which holds a place in its client's queue and has its wire: by a read sent
  // now, or by the one that follows the equal read under way. True if it was sent.
  bool read(Shard& shard, Request& request, Nanos now);

 private:
  struct Flight {
    std::vector<Request*> sent;  // get the answer under way
    std::vector<Request*> next;  // came since: get the next one
  };
  void send(Shard& shard, const std::string& key, Nanos now);
  void on_answer(Shard& shard, const std::string& key, std::string_view reply);

  RequestPool& pool_;
  telemetry::Durations& durations_;
  size_t most_shared_;
  boost::unordered_flat_map<std::string, Flight> flights_;  // by RESP version and the wire's bytes
};

}  // namespace ballast::cache
