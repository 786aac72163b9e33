// SPDX-License-Identifier: Apache-2.0
// A buffered TCP connection on a loop, with TLS if wanted. Input is handed to the sink from the
// loop's shared scratch and kept only where the sink left some; output is collected and sent once
// per turn.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "io/fd.h"
#include "io/loop.h"
#include "io/socket.h"
#include "io/tls.h"

namespace ballast::io {

class StreamSink {
 public:
  virtual ~StreamSink() = default;
  // Gets all input not yet consumed, and says how much of it is done with. `now` was read after the
  // bytes were.
  virtual size_t on_data(std::string_view data, Nanos now) = 0;
  // The connection is gone (peer, error, refused connect, or all sent after
  // close_after_flush()); called once, never for close(). Words
  // name the cause.
  virtual void on_closed(const std::string& cause) = 0;
  virtual void on_connected() {}
  // Buffered output fell below the low mark after having been above it.
  virtual void on_writable() {}
};

class Stream final : public Loop::Handler, public Loop::Deferred {
 public:
  // The stream lives until close(); the sink must outlive it or close it. `fd` may still be
  // connecting.
  static Result<Stream*> create(Loop& loop, Fd fd, bool connecting, StreamSink* sink,
                                std::shared_ptr<TlsContext> tls = nullptr);
  ~Stream() override = default;

  // Append to out(), then flush_later(). What is appended after close() is lost.
  std::string& out() { return out_; }
  void flush_later() { loop_.defer(this); }
  void write(std::string_view bytes) {
    out_.append(bytes);
    flush_later();
  }
  size_t buffered() const { return out_.size() - sent_ + encrypted_.size() - encrypted_sent_; }
  size_t input_held() const { return in_.size(); }

  void pause_reading() { reading_ = false; }
  void resume_reading();  // hands over what came meanwhile, in a later turn

  void close();              // at once; unsent output is lost
  void close_after_flush();  // reads nothing more, closes when all is sent

  bool connected() const { return connected_; }
  int fd() const { return fd_.get(); }

  void on_ready(uint32_t epoll_events) override;
  void on_turn_end() override;

  static constexpr size_t kLowMark = 256 * 1024;
  static constexpr size_t kHighMark = 1024 * 1024;

 private:
  Stream(Loop& loop, Fd fd, bool connecting, StreamSink* sink, std::shared_ptr<TlsContext> tls);
  void finish_connect();
  void read_some(bool until_end);
  bool deliver(std::string_view fresh);
  bool deliver_tls(std::string_view encrypted);
  void keep(std::string_view rest);
  void flush();
  bool send_buffer(std::string& buffer, size_t& sent);
  void broken(const std::string& cause);

  Loop& loop_;
  Fd fd_;
  StreamSink* sink_;
  std::unique_ptr<TlsSession> tls_;
  std::string in_;  // received, not yet consumed
  std::string out_;
  size_t sent_ = 0;  // of out_
  std::string encrypted_;
  size_t encrypted_sent_ = 0;
  bool connected_;
  bool reading_ = true;
  bool redeliver_ = false;  // kept input goes to the sink again
  bool closing_ = false;    // close when flushed
  bool closed_ = false;
  bool above_low_ = false;
};

}  // namespace ballast::io
