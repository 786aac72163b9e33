// SPDX-License-Identifier: Apache-2.0
// One client's connection: reads its commands, keeps the order of replies, and makes a command wait
// that could overtake an earlier one on the same key.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/ring.h"
#include "cache/pending_keys.h"
#include "cache/request.h"
#include "io/stream.h"
#include "proto/resp_command.h"

namespace ballast::cache {

class Router;
struct Session;

class Client final : public io::StreamSink, public io::Loop::Deferred, public io::Loop::Disposable {
 public:
  Client(Router& router, uint64_t id);
  ~Client() override;

  void attach(io::Stream* stream) { stream_ = stream; }

  // A reply that is known at once; it takes its place behind what is pending.
  void reply(std::string_view whole);
  void error(std::string_view text);  // "ERR …", without the dash
  void reply_ok() { reply("+OK\r\n"); }

  // A request whose reply will come by on_answer, in this place of the order. `hash` of its key, 0
  // for several keys.
  Request& expect(Path path, uint64_t hash);
  void on_answer(Request& request, std::string_view piece, bool last);
  // A part's reply of so many bytes is held until `request` can be answered.
  void hold_part(Request& request, size_t bytes);
  // The request left the shard's path: a command on its keys sent to the shard now would overtake
  // it.
  void leaves_path(Request& request);
  // Out of order by nature: pushes, published messages.
  void push(std::string_view bytes);

  // True if a command sent to the shard now could overtake an earlier one on the same key (0: any
  // key).
  bool overtakes(uint64_t hash) const;
  // True if an earlier command on this key is not over: an answer at once would overtake it.
  bool key_pending(uint64_t hash) const;
  bool idle() const { return pending_.empty(); }
  // A blocking command, such as BLPOP, is under way.
  bool runs_blocking() const { return !pending_.empty() && pending_.front()->blocking; }

  // Reads no more commands until unblock(), e.g. while a blocking command runs.
  void block() { blocked_ = true; }
  void unblock();
  void close(std::string_view why);  // at once
  void close_after_replies();
  bool closing() const { return closing_; }

  Session& session();  // made when first needed
  const Session* session_if_any() const { return session_.get(); }
  Router& router() { return router_; }
  uint64_t id() const { return id_; }
  io::Stream* stream() const { return stream_; }
  Nanos since() const { return since_; }
  Nanos last_active() const { return last_active_; }
  // Bytes kept for it: commands not read or not answered yet, replies not sent yet.
  size_t held() const;
  size_t counted = 0;  // the router's record of held()

  void set_authenticated(bool authenticated);
  bool authenticated() const { return authenticated_; }

  uint8_t proto = 2;
  uint32_t last_command = UINT32_MAX;  // its place in the router's command table
  bool plain = true;  // authenticated, and nothing in session() changes how a command is treated

  size_t on_data(std::string_view data, Nanos now) override;
  void on_closed(const std::string& cause) override;
  bool on_end() override;
  void on_writable() override;
  void on_turn_end() override;

 private:
  static constexpr size_t kMaxPending = PendingKeys::kMost;
  static constexpr size_t kFew = 8;  // pending commands that are looked at one by one
  static constexpr size_t kMaxAsked = 8 * 1024 * 1024;

  template <typename Bytes>
  void write(Bytes&& bytes);
  void add_pending(Request* request);
  void finish(Request& request);
  void drain();
  bool must_wait() const;
  void stall();
  void forget_pending();
  bool over_limit() const;
  void check_output();

  Router& router_;
  io::Stream* stream_ = nullptr;
  uint64_t id_;
  Nanos since_;
  Nanos last_active_ = 0;
  proto::CommandParser parser_;
  mutable Ring<Request*> pending_;
  std::unique_ptr<PendingKeys> pending_keys_;  // of those not complete; while there are many
  size_t off_path_ = 0;      // pending requests that were sent on another path than kShard
  size_t held_bytes_ = 0;    // replies that wait for earlier ones or for other parts
  size_t wire_bytes_ = 0;    // of the command at hand
  size_t asked_bytes_ = 0;   // of the commands pending
  size_t unread_bytes_ = 0;  // of input kept by the stream
  std::unique_ptr<Session> session_;
  bool authenticated_ = true;
  bool stalled_ = false;  // the next command waits
  bool blocked_ = false;
  bool closing_ = false;  // takes no more commands
  bool closed_ = false;
};

}  // namespace ballast::cache
