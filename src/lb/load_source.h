// SPDX-License-Identifier: Apache-2.0
// Asks instances for their load, each once an interval, all evenly spread over it, whatever way
// each tells it. None waits for another. On one loop. docs/reference/lb-load.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/socket.h"
#include "model/lb.h"

namespace ballast::lb {

struct LoadTarget {
  model::LoadSource source = model::LoadSource::kAgent;  // not kNone
  io::Address address;
  std::string path = "/";   // of an HTTP request
  std::string metric = {};  // kHttpJson: dotted path; kPrometheus: name, or name{label="value"}
  double full = 1;          // the metric's value at which nothing is free
};

// The last that was heard of one target, and how its polls went. What it did not tell is not there.
// A poll that is missed or refused leaves all of it as it was.
struct LoadState {
  std::optional<double> utilisation;  // of the processors, or the metric over `full`; 0 to 1
  std::optional<double> cores;
  std::optional<uint32_t> connections;
  std::optional<uint32_t> accept_queue;  // complete but not accepted yet
  std::optional<uint32_t> latency_us;
  std::optional<double> factor;  // of the static weight, an agent-check's "75%" is 0.75; 0 to 256
  bool drains = false;           // an agent-check said drain, maint, down, failed or stopped
  uint64_t incarnation = 0;      // of an agent, random at its start
  uint64_t number = 0;           // of an agent's answers

  Nanos heard_at = 0;    // 0: never
  uint32_t missed = 0;   // polls in a row without a good answer, up to now
  uint64_t polls = 0;    // sent, or not sent because the one before was still under way
  uint64_t answers = 0;  // good ones
  uint64_t refused = 0;  // forged, unreadable, or a figure that cannot be
  std::string error;     // why there was no good answer; empty after one
};

struct LoadOptions {
  Nanos interval = 100 * kMillisecond;
  std::string secret = {};           // the agents'; empty: kAgent targets are refused
  Nanos timeout = kSecond;           // of a TCP connection or an HTTP answer
  size_t most_answer = 1024 * 1024;  // bytes of an HTTP body; more is refused
};

class LoadSources {
 public:
  static Result<std::unique_ptr<LoadSources>> create(io::Loop& loop, LoadOptions options);
  ~LoadSources();

  // From now on it is asked. Equal targets are one, asked once; each add() needs its remove().
  // kInvalid: a metric that cannot be read, no address, no secret; kSystem: no socket.
  Result<uint32_t> add(const LoadTarget& target);
  void remove(uint32_t id);
  // Stays where it is until the target's last remove().
  const LoadState& state(uint32_t id) const;
  size_t size() const;  // different targets

  // How late each poll left, in nanoseconds after it was due.
  const Histogram& lateness() const;
  // From an agent's poll until its answer was seen, in nanoseconds; looked for every two
  // milliseconds.
  const Histogram& round_trips() const;
  // Datagrams that answered no question under way: late, recorded earlier, or no report.
  uint64_t strays() const;

 private:
  class Impl;
  explicit LoadSources(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::lb
