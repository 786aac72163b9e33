// SPDX-License-Identifier: Apache-2.0
// One direction of a captured TCP connection put in order: segments out of order wait for the
// missing ones, repeated bytes are dropped, and what never comes is a gap. Memory is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "proto/frame.h"

namespace ballast::proto {

class TcpStream {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void start() = 0;  // a connection begins: the next byte is its first
    virtual void bytes(std::string_view data) = 0;
    virtual void
    gap() = 0;  // bytes are missing before the next ones, or the beginning was not seen
  };

  // So much waits for missing bytes before they are given up.
  static constexpr size_t kMostWaiting = size_t{256} * 1024;
  static constexpr size_t kMostSegments = 64;

  void segment(const TcpSegment& segment, Sink& sink);
  // Gives up what is missing and hands out all that waits.
  void finish(Sink& sink);

 private:
  void take(uint64_t position, std::string_view data, Sink& sink);
  void drain(Sink& sink);
  void skip_to(uint64_t position, Sink& sink);

  // Positions are sequence numbers continued beyond 32 bits, with 2^32 added.
  bool known_ = false;
  uint64_t next_ = 0;
  uint32_t first_ = 0;  // sequence number after the SYN, once one was seen
  bool syn_seen_ = false;
  std::map<uint64_t, std::string> waiting_;
  size_t waiting_bytes_ = 0;
};

}  // namespace ballast::proto
