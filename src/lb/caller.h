// SPDX-License-Identifier: Apache-2.0
// Asks one address over TCP, one question at a time: whether it accepts, for a line of text, or by
// HTTP, there over a connection that is kept if wanted. On one loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/socket.h"
#include "io/stream.h"
#include "lb/http_answer.h"

namespace ballast::lb {

struct CallOptions {
  enum class Kind : uint8_t {
    kConnect,  // answered by being accepted
    kLine,     // the other side speaks at once, up to a line's or the connection's end
    kHttp,
  };
  Kind kind = Kind::kConnect;
  io::Address address;
  std::string path = "/";
  bool keeps_connection = false;  // kHttp
  bool needs_body = true;         // kHttp; without, one that is too long is no error
  Nanos timeout = kSecond;
  size_t most_bytes = 4096;  // of a line or a body
};

struct CallAnswer {
  unsigned status = 0;    // of HTTP
  std::string text = {};  // the line with its end, or the body
};

// Given back to the loop by retire(), since its own calls may lead there.
class Caller final : public io::StreamSink, public io::Loop::Disposable {
 public:
  // The last thing a question does; may come before ask() returns.
  using Done = std::function<void(const Result<CallAnswer>& answer)>;

  Caller(io::Loop& loop, CallOptions options, Done done);
  ~Caller() override;
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void ask();  // not while busy
  bool is_busy() const { return is_busy_; }
  // Ends what is under way without an answer, and goes at the end of the loop's turn.
  static void retire(std::unique_ptr<Caller> caller);

  size_t on_data(std::string_view data, Nanos now) override;
  void on_closed(const std::string& cause) override;
  void on_connected() override;
  bool on_end() override;

 private:
  void connect();
  void stop();
  void finish(const Result<CallAnswer>& answer);
  size_t on_line(std::string_view data);
  size_t on_http(std::string_view data);
  void acknowledge_at_once();

  io::Loop& loop_;
  CallOptions options_;
  std::string request_;
  Done done_;
  io::Stream* stream_ = nullptr;
  std::optional<HttpAnswer> answer_;
  std::string line_;
  bool is_busy_ = false;
  bool is_reused_ = false;     // the question went over a connection that was there
  bool is_answering_ = false;  // bytes came
  io::Loop::Timer timer_{};
};

}  // namespace ballast::lb
