// SPDX-License-Identifier: Apache-2.0
// A pipelined connection to one Redis-protocol server: commands go out in order, answers come back
// in that order. An answer that comes after its deadline is still taken off in its place and given
// to nobody.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ring.h"
#include "cache/request.h"
#include "io/loop.h"
#include "io/stream.h"
#include "proto/resp_reply.h"

namespace ballast::cache {

class Link;

class LinkOwner {
 public:
  virtual ~LinkOwner() = default;
  virtual void on_link_up(Link& link) = 0;
  virtual void on_link_down(Link& link, const std::string& cause) = 0;
  // A piece of the answer to `request`; `last` with its last piece.
  virtual void on_answer(Request& request, std::string_view piece, bool last, Nanos now) = 0;
  virtual void on_timeout(
      Request& request) = 0;  // the answer may still come: on_answer is then called all the same
  virtual void on_failure(Request& request, const std::string& cause) = 0;  // no answer will come
  virtual void on_push(Link& link, std::string_view push) = 0;
};

struct LinkOptions {
  io::Address address;
  std::string name;  // CLIENT SETNAME; empty: none
  std::string user;  // with password; empty: the default user
  std::string password;
  uint8_t proto = 2;
  bool tracking = false;
  Nanos connect_timeout = kSecond;
  Nanos silence =
      10 * kSecond;  // with answers overdue for this long and none coming, it connects anew
};

class Link final : public io::StreamSink {
 public:
  Link(io::Loop& loop, RequestPool& pool, LinkOwner& owner, LinkOptions options);
  ~Link() override;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void open();
  // Closes the connection as if it had broken; it is opened again after a pause.
  void reset(const std::string& cause);
  void shut_down();  // closes for good

  // `wire` is one complete command. While the first connection is being made the request waits;
  // while the link is down it fails at once.
  void send(std::string_view wire, Request& request);
  // A command that is answered by pushes only (SUBSCRIBE in RESP3).
  void send_unanswered(std::string_view wire);
  void tick(Nanos now);  // finds what is over its deadline

  bool up() const { return state_ == State::kUp; }
  bool down() const { return state_ == State::kDown; }
  const std::string& cause() const { return cause_; }  // why it is down
  int64_t client_id() const { return client_id_; }     // of this connection at the server
  size_t in_flight() const { return in_flight_.size(); }
  uint64_t late() const { return late_; }  // answers that came after on_timeout()
  LinkOptions& options() { return options_; }

  size_t on_data(std::string_view data, Nanos now) override;
  void on_closed(const std::string& cause) override;
  void on_connected() override;

 private:
  enum class State { kIdle, kConnecting, kGreeting, kUp, kDown };
  void greet();
  void greeting(std::string_view wire, std::function<void(Request&)> done);
  void greeted();
  void fail_all(const std::string& cause);
  void answer(std::string_view piece, bool last, Nanos now);
  void push_piece(std::string_view piece, bool last);

  io::Loop& loop_;
  RequestPool& pool_;
  LinkOwner& owner_;
  LinkOptions options_;
  io::Stream* stream_ = nullptr;
  State state_ = State::kIdle;
  proto::ReplyScanner scanner_;
  Ring<Request*> in_flight_;
  Ring<Request*> early_;  // sent before the link was up, with their wire
  uint64_t late_ = 0;
  size_t overdue_ = 0;       // of in_flight_, from the front: reported as timed out
  Nanos last_answer_ = 0;    // kept only while answers are overdue
  Nanos last_piece_ = 0;     // of a large answer
  std::string early_bytes_;  // of unanswered commands sent before the link was up
  std::string push_;         // a push cut by the end of a read
  std::string cause_;
  int64_t client_id_ = 0;
  Nanos pause_ = 0;
  io::Loop::Timer timer_{};
};

}  // namespace ballast::cache
