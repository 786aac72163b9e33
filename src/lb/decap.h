// SPDX-License-Identifier: Apache-2.0
// Beside an instance: runs bpf/lb/decap.bpf.c on its interfaces, and finds the way to the instances
// that packets are handed on to.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "io/loop.h"
#include "lb/attachments.h"
#include "lb/neighbours.h"
#include "loader/lb_program.h"

namespace ballast::lb {

struct DecapOptions {
  std::vector<std::string> interfaces;
  std::vector<HostAddress> balancers;  // outer source addresses that are opened
  std::string pins;                    // folder where attachments are kept
  bool keep = false;                   // after the process
};

struct DecapCount {
  std::string name;
  std::string words;
  uint64_t packets = 0;
};

// Detached when destroyed unless it is kept. One thread, the loop's.
class Decap {
 public:
  // kInvalid: too many balancers; kSystem names an interface that is not there, or what the kernel
  // refused.
  static Result<std::unique_ptr<Decap>> create(io::Loop& loop, const DecapOptions& options);
  ~Decap();
  Decap(const Decap&) = delete;
  Decap& operator=(const Decap&) = delete;

  Result<std::vector<DecapCount>> counts() const;

 private:
  Decap(io::Loop& loop, loader::DecapProgram program) : loop_(loop), program_(std::move(program)) {}
  Result<> find_peers();
  void find_peers_again();

  io::Loop& loop_;
  loader::DecapProgram program_;
  std::vector<Attached> attached_;
  std::unique_ptr<Neighbours> neighbours_;
  std::set<HostAddress> peers_;
  io::Loop::Timer timer_{};
};

}  // namespace ballast::lb
