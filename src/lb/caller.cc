// SPDX-License-Identifier: Apache-2.0
#include "lb/caller.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

#include "base/check.h"

namespace ballast::lb {
namespace {

using Kind = CallOptions::Kind;

// What closes first would wait a minute for late segments; ten calls a second each are too many for
// that. Nothing that is asked here is lost by a reset.
void close_at_once(int fd) {
  const linger now{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace

Caller::Caller(io::Loop& loop, CallOptions options, Done done)
    : loop_(loop), options_(std::move(options)), done_(std::move(done)) {
  if (options_.kind == Kind::kHttp)
    request_ = http_request(options_.address.text(), options_.path, options_.keeps_connection);
}

Caller::~Caller() { stop(); }

void Caller::retire(std::unique_ptr<Caller> caller) {
  if (caller == nullptr) return;
  caller->stop();
  io::Loop& loop = caller->loop_;
  loop.dispose(std::move(caller));
}

void Caller::stop() {
  loop_.cancel(timer_);
  is_busy_ = false;
  if (stream_ != nullptr) std::exchange(stream_, nullptr)->close();
}

void Caller::ask() {
  BALLAST_CHECK(!is_busy_);
  is_busy_ = true;
  is_answering_ = false;
  timer_ = loop_.after(options_.timeout, [this] {
    const char* what = stream_ != nullptr && stream_->connected() ? "answer" : "connection";
    finish(fail(ErrorCode::kTimeout,
                fmt::format("no {} within {} ms", what, options_.timeout / kMillisecond)));
  });
  is_reused_ = stream_ != nullptr;
  connect();
}

void Caller::connect() {
  line_.clear();
  answer_.reset();
  if (options_.kind == Kind::kHttp) answer_.emplace(options_.most_bytes);
  if (stream_ == nullptr) {
    auto fd = io::connect_tcp(options_.address);
    if (!fd) return finish(Unexpected(fd.error()));
    close_at_once(fd->get());
    const auto made = io::Stream::create(loop_, std::move(*fd), true, this);
    if (!made) return finish(Unexpected(made.error()));
    stream_ = *made;
  }
  if (!request_.empty()) stream_->write(request_);
}

// One who writes an answer in two pieces waits after the first for its acknowledgement (Nagle), and
// that would be held back for 40 ms and more in wait of something to send.
void Caller::acknowledge_at_once() {
  const int on = 1;
  setsockopt(stream_->fd(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

void Caller::on_connected() {
  if (options_.kind == Kind::kConnect) return finish(CallAnswer{});
  acknowledge_at_once();
}

size_t Caller::on_data(std::string_view data, Nanos /*now*/) {
  if (!is_busy_) {  // nothing was asked
    std::exchange(stream_, nullptr)->close();
    return data.size();
  }
  is_answering_ = true;
  const size_t used = options_.kind == Kind::kHttp ? on_http(data) : on_line(data);
  if (is_busy_ && stream_ != nullptr) acknowledge_at_once();
  return used;
}

size_t Caller::on_line(std::string_view data) {
  line_.append(data);
  if (line_.find_first_of("\r\n") != std::string::npos) {
    finish(CallAnswer{.text = line_});
  } else if (line_.size() > options_.most_bytes) {
    finish(fail(ErrorCode::kLimit, "a line without an end"));
  }
  return data.size();
}

size_t Caller::on_http(std::string_view data) {
  const auto used = answer_->take(data);
  if (!used) {
    const bool is_enough = used.error().code == ErrorCode::kLimit && answer_->has_status();
    finish(is_enough && !options_.needs_body ? Result<CallAnswer>(CallAnswer{answer_->status()})
                                             : Unexpected(used.error()));
    return data.size();
  }
  if (!answer_->is_done()) return *used;
  finish(CallAnswer{answer_->status(), answer_->body()});
  // What is behind the answer would be taken for the next one.
  if (*used < data.size() && stream_ != nullptr) std::exchange(stream_, nullptr)->close();
  return data.size();
}

bool Caller::on_end() {
  if (!is_busy_ || !is_answering_) return false;  // on_closed() follows
  if (options_.kind == Kind::kLine) {
    finish(CallAnswer{.text = line_});
  } else if (const auto ended = answer_->end(); ended) {
    finish(CallAnswer{answer_->status(), answer_->body()});
  } else {
    finish(Unexpected(ended.error()));
  }
  return false;
}

void Caller::on_closed(const std::string& cause) {
  const bool was_connected = is_reused_ || is_answering_ || stream_->connected();
  stream_ = nullptr;
  if (!is_busy_) return;
  // The other side gave an idle connection up just when it was used again.
  if (std::exchange(is_reused_, false) && !is_answering_) return connect();
  finish(fail(ErrorCode::kUnavailable, (was_connected ? "" : "connect: ") + cause));
}

void Caller::finish(const Result<CallAnswer>& answer) {
  if (!is_busy_) return;
  is_busy_ = false;
  loop_.cancel(timer_);
  const bool is_kept = answer && options_.keeps_connection && answer_ && answer_->is_done() &&
                       answer_->keeps_connection();
  if (!is_kept && stream_ != nullptr) std::exchange(stream_, nullptr)->close();
  done_(answer);
}

}  // namespace ballast::lb
