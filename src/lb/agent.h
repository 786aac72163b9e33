// SPDX-License-Identifier: Apache-2.0
// An instance's agent: measures the instance's load and tells it to balancers that ask, by its own
// protocol (proto/load_report.h) and, if wanted, as HAProxy's agent-check.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "io/listener.h"
#include "io/loop.h"
#include "lb/cpu_meter.h"
#include "lb/socket_count.h"
#include "model/tier.h"
#include "proto/load_report.h"

namespace ballast::lb {

struct AgentOptions {
  model::Endpoint listen;            // UDP
  model::Endpoint check;             // TCP, for HAProxy; no host: off
  std::vector<std::string> secrets;  // it answers to who knows one of them
  std::string group;                 // control group; empty: the whole host
  std::string group_root = "/sys/fs/cgroup";
  std::vector<uint16_t> ports;  // of the instance, whose connections count
  model::Endpoint probe;        // asked over HTTP for its latency; no host: off
  std::string probe_path = "/";
  Nanos window = 200 * kMillisecond;  // over which utilisation is measured
};

class Agent final : public io::Loop::Handler {
 public:
  static Result<std::unique_ptr<Agent>> create(io::Loop& loop, AgentOptions options);
  ~Agent() override;

  io::Address address() const { return io::local_address(socket_.get()); }
  io::Address check_address() const;
  // What it would answer now.
  proto::LoadReport report();
  uint64_t refused() const { return refused_; }  // datagrams that nothing was answered to

  void on_ready(uint32_t epoll_events) override;

 private:
  Agent(io::Loop& loop, AgentOptions options, CpuMeter meter, SocketCounter counter, io::Fd socket);
  void measure();
  void probe(const std::stop_token& stop);
  std::string check_text();
  Result<std::string> answer(std::string_view request);

  struct Reading {
    Nanos at;
    CpuReading cpu;
  };

  io::Loop& loop_;
  AgentOptions options_;
  std::vector<proto::LoadSecret> secrets_;
  CpuMeter meter_;
  SocketCounter counter_;
  io::Fd socket_;
  std::unique_ptr<io::Listener> check_;
  std::deque<Reading> readings_;  // oldest first, the last `window` of time
  proto::LoadReport report_;      // but for its number
  Nanos measured_at_ = 0;
  uint64_t answered_ = 0;
  uint64_t refused_ = 0;
  io::Loop::Timer timer_{};
  std::atomic<int64_t> latency_us_ = -1;
  std::jthread prober_;
};

}  // namespace ballast::lb
