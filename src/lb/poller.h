// SPDX-License-Identifier: Apache-2.0
// Asks many instances' agents for their load, each once an interval, all evenly spread over it.
// None waits for another: what is not answered when its turn comes again is missed. On one loop.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/random.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/socket.h"
#include "proto/load_report.h"

namespace ballast::lb {

struct PollerOptions {
  Nanos interval = 100 * kMillisecond;
  std::string secret;
};

// The last that was heard of one agent, and how its polls went.
struct Polled {
  io::Address agent;
  std::optional<proto::LoadReport> report;  // stays when polls are missed
  uint32_t missed = 0;                      // in a row, up to now
  uint64_t polls = 0;
  uint64_t answers = 0;
  uint64_t refused = 0;  // answers that were forged or said what cannot be
};

class Poller {
 public:
  // `on_interval` is called after each round, when every agent was asked once more.
  static Result<std::unique_ptr<Poller>> create(io::Loop& loop,
                                                const std::vector<io::Address>& agents,
                                                PollerOptions options,
                                                std::function<void()> on_interval = {});
  ~Poller();

  const std::vector<Polled>& agents() const { return agents_; }
  // Datagrams that answered no question under way: late, recorded earlier, or no report.
  uint64_t strays() const { return strays_; }
  // How late each poll left, in nanoseconds after it was due.
  const Histogram& lateness() const { return lateness_; }
  // From a poll until its answer was seen, in nanoseconds; looked for every millisecond.
  const Histogram& round_trips() const { return round_trips_; }

 private:
  struct Asked {
    size_t agent;
    Nanos sent;
  };
  Poller(io::Loop& loop, const std::vector<io::Address>& agents, PollerOptions options,
         std::function<void()> on_interval);
  void turn();
  void ask(size_t agent, Nanos now);
  void read(int fd);
  void take(std::string_view datagram, Nanos now);
  Nanos due(uint64_t poll) const;

  io::Loop& loop_;
  PollerOptions options_;
  proto::LoadSecret secret_;
  std::function<void()> on_interval_;
  std::vector<Polled> agents_;
  std::vector<uint64_t> nonces_;                      // of each agent's question under way; 0: none
  boost::unordered_flat_map<uint64_t, Asked> asked_;  // by nonce
  std::array<io::Fd, 2> sockets_;                     // IPv4, IPv6
  Random random_;
  Nanos begun_ = 0;
  uint64_t next_poll_ = 0;  // over all agents and rounds
  uint64_t strays_ = 0;
  io::Loop::Timer timer_{};
  Histogram lateness_;
  Histogram round_trips_;
};

}  // namespace ballast::lb
