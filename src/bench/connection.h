// SPDX-License-Identifier: Apache-2.0
// One client connection of the load generator: requests in flight in their order, replies matched
// to them. A lost connection is opened again a tenth of a second later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "bench/verifier.h"
#include "io/loop.h"
#include "io/socket.h"
#include "io/stream.h"

namespace ballast::bench {

enum class Op : uint8_t { kRead, kWrite, kSetup };

struct Request {
  Nanos begun = 0;  // when it was due (open loop) or sent
  uint32_t key = 0;
  uint32_t number = 0;  // a write's
  ReadMark mark = {};   // a read's
  Op op = Op::kRead;
};

struct Reply {
  char type = 0;          // RESP's first byte
  bool null = false;      // '$' or '_'
  std::string_view text;  // of '$' the bytes, else the line behind the type
};

class Connection;

// Whoever decides what connections send.
class Director {
 public:
  virtual ~Director() = default;
  virtual void on_open(Connection& connection) = 0;  // set up, too
  virtual void on_reply(Connection& connection, const Request& request, const Reply& reply,
                        Nanos now) = 0;
  virtual void on_room(Connection& connection, Nanos now) = 0;
  // Called for each request in flight, oldest first, then once with nullptr.
  virtual void on_lost(Connection& connection, const Request* request,
                       const std::string& cause) = 0;
};

class Connection final : public io::StreamSink {
 public:
  struct Plan {
    uint32_t index = 0;
    uint32_t depth = 1;  // requests in flight, at most
    io::Address address;
    std::string setup = {};  // commands sent first, RESP
    uint32_t setup_replies = 0;
  };
  Connection(io::Loop& loop, Director& director, Plan plan);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void open();
  void close();

  uint32_t index() const { return plan_.index; }
  bool is_open() const { return ready_; }
  uint32_t in_flight() const { return count_; }
  void set_depth(uint32_t depth) { plan_.depth = depth; }  // not above the plan's
  bool has_room() const {
    return ready_ && count_ < plan_.depth && stream_->buffered() < io::Stream::kHighMark;
  }
  // The caller appends the request's bytes; only with has_room().
  std::string& begin(const Request& request);

  size_t on_data(std::string_view data, Nanos now) override;
  void on_closed(const std::string& cause) override;
  void on_connected() override;
  void on_writable() override;

 private:
  Request pop();
  bool take(const Reply& reply, Nanos now);
  void lose(const std::string& cause);

  io::Loop& loop_;
  Director& director_;
  Plan plan_;
  io::Stream* stream_ = nullptr;
  std::optional<io::Loop::Timer> retry_;
  std::vector<Request> ring_;
  uint32_t head_ = 0;
  uint32_t count_ = 0;
  bool ready_ = false;
};

}  // namespace ballast::bench
