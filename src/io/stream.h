// SPDX-License-Identifier: Apache-2.0
// A buffered TCP connection on a loop, with TLS if wanted. Input is handed to the sink from the
// loop's shared scratch and kept only where the sink left some; output is collected and sent once
// per turn, and what the peer is slow to take is kept in chunks that go as they are sent.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
  // The peer sends no more. True: the sink calls close_after_flush() when it has answered; else the
  // stream closes now.
  virtual bool on_end() { return false; }
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
  void write(std::string&& bytes);  // large ones are not copied
  size_t buffered() const {
    return backlog_bytes_ + out_.size() - sent_ + encrypted_.size() - encrypted_sent_;
  }
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
  // A TLS client that has not finished its handshake by then is closed.
  static constexpr Nanos kHandshakeTime = 10 * kSecond;

 private:
  Stream(Loop& loop, Fd fd, bool connecting, StreamSink* sink, std::shared_ptr<TlsContext> tls);
  void finish_connect();
  void read_some(bool until_end);
  bool deliver(std::string_view fresh);
  bool deliver_tls(std::string_view encrypted);
  void keep(std::string_view rest);
  void flush();
  bool send_buffer(const std::string& buffer, size_t& sent);
  bool send_plain();
  bool send_encrypted();
  std::string& head() { return backlog_.empty() ? out_ : backlog_.front(); }
  void head_done();
  void shelve();
  void finish_closing();
  void broken(const std::string& cause);

  Loop& loop_;
  Fd fd_;
  StreamSink* sink_;
  std::unique_ptr<TlsSession> tls_;
  std::string in_;                    // received, not yet consumed
  std::vector<std::string> backlog_;  // goes out before out_
  size_t backlog_bytes_ = 0;
  std::string out_;
  size_t sent_ = 0;  // of head()
  std::string encrypted_;
  size_t encrypted_sent_ = 0;
  bool connected_;
  bool reading_ = true;
  bool redeliver_ = false;  // kept input goes to the sink again
  bool closing_ = false;    // close when flushed
  bool closed_ = false;
  bool above_low_ = false;
  Loop::Timer handshake_{};
};

}  // namespace ballast::io
