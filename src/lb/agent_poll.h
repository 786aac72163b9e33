// SPDX-License-Identifier: Apache-2.0
// Questions to agents by UDP and their answers, matched by nonce. An agent has one question under
// way at most: another takes its place. On one thread.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "io/socket.h"
#include "proto/load_report.h"

namespace ballast::lb {

class AgentPoll {
 public:
  explicit AgentPoll(const std::string& secret) : secret_(secret), random_(system_seed()) {}

  // Once before agents of this address's family are asked.
  Result<> open_for(const io::Address& agent);
  // Leaves with the next send(). What cannot be sent is missed like what is not answered.
  void ask(uint32_t id, const io::Address& agent, Nanos now);
  void send();
  void forget(uint32_t id);
  bool is_waiting() const { return !asked_.empty(); }

  // Takes what came, up to some thousand datagrams. `round_trip` is in nanoseconds. After a report
  // that is refused the true answer may still come.
  using Take =
      std::function<void(uint32_t id, const Result<proto::LoadReport>& report, Nanos round_trip)>;
  void read(Nanos now, const Take& take);
  uint64_t strays() const { return strays_; }

 private:
  struct Asked {
    uint32_t id;
    Nanos sent;
  };
  struct Question {
    std::string datagram;
    io::Address agent;
  };
  static void send(int fd, std::vector<Question>& questions);
  void read(int fd, Nanos now, const Take& take);
  void hear(std::string_view datagram, Nanos now, const Take& take);

  proto::LoadSecret secret_;
  Random random_;
  std::array<io::Fd, 2> sockets_;                         // IPv4, IPv6
  std::array<std::vector<Question>, 2> questions_;        // to be sent by each
  boost::unordered_flat_map<uint64_t, Asked> asked_;      // by nonce
  boost::unordered_flat_map<uint32_t, uint64_t> nonces_;  // by id
  uint64_t strays_ = 0;
};

}  // namespace ballast::lb
