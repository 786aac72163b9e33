// SPDX-License-Identifier: Apache-2.0
#include "cache/link.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/log.h"
#include "proto/resp_write.h"

namespace ballast::cache {
namespace {

constexpr Nanos kFirstPause = 50 * kMillisecond;
constexpr Nanos kLongestPause = kSecond;
constexpr size_t kLargePiece = 16 << 10;
constexpr size_t kMaxPush = 16 << 20;

std::string command(std::initializer_list<std::string_view> args) {
  std::string wire;
  proto::append_command(wire, std::span(args.begin(), args.size()));
  return wire;
}

std::string first_line(std::string_view reply) {
  return std::string(reply.substr(0, reply.find("\r\n")));
}

}  // namespace

Link::Link(io::Loop& loop, RequestPool& pool, LinkOwner& owner, LinkOptions options)
    : loop_(loop), pool_(pool), owner_(owner), options_(std::move(options)) {}

Link::~Link() { shut_down(); }

void Link::open() {
  loop_.cancel(timer_);
  auto fd = io::connect_tcp(options_.address);
  if (!fd) return on_closed(fd.error().message);
  auto stream = io::Stream::create(loop_, std::move(*fd), true, this);
  if (!stream) return on_closed(stream.error().message);
  stream_ = *stream;
  scanner_.reset();
  push_.clear();
  last_piece_ = 0;
  if (state_ == State::kIdle) state_ = State::kConnecting;
  timer_ = loop_.after(options_.connect_timeout, [this] { reset("no connection in time"); });
}

void Link::on_connected() { greet(); }

void Link::greet() {
  if (!options_.password.empty()) {
    greeting(options_.user.empty() ? command({"AUTH", options_.password})
                                   : command({"AUTH", options_.user, options_.password}),
             nullptr);
  }
  if (options_.proto == 3) greeting(command({"HELLO", "3"}), nullptr);
  if (!options_.name.empty()) greeting(command({"CLIENT", "SETNAME", options_.name}), nullptr);
  if (options_.tracking) greeting(command({"CLIENT", "TRACKING", "ON"}), nullptr);
  greeting(command({"CLIENT", "ID"}), [this](Request& request) {
    std::from_chars(request.reply.data() + 1, request.reply.data() + request.reply.size(),
                    client_id_);
    greeted();
  });
  stream_->flush_later();
}

void Link::greeting(std::string_view wire, std::function<void(Request&)> done) {
  Request* request = pool_.take();
  pool_.hold(request);
  request->done = [this, done = std::move(done)](Request& answered) {
    if (stream_ == nullptr) return;
    if (answered.reply.starts_with('-')) {
      reset("refused: " + first_line(std::string_view(answered.reply).substr(1)));
    } else if (done) {
      done(answered);
    }
  };
  request->deadline = now_ns() + options_.connect_timeout;
  stream_->out().append(wire);
  in_flight_.push_back(request);
}

void Link::greeted() {
  loop_.cancel(timer_);
  if (state_ == State::kDown) log_info("{} is back", options_.address.text());
  state_ = State::kUp;
  pause_ = 0;
  while (!early_.empty()) {
    Request* request = early_.front();
    early_.pop_front();
    stream_->out().append(request->wire);
    in_flight_.push_back(request);
  }
  stream_->write(std::exchange(early_bytes_, {}));
  owner_.on_link_up(*this);
}

void Link::send(std::string_view wire, Request& request) {
  pool_.hold(&request);
  if (state_ == State::kUp) [[likely]] {
    stream_->out().append(wire);
    stream_->flush_later();
    in_flight_.push_back(&request);
    return;
  }
  if (state_ != State::kDown) {
    if (request.wire.data() != wire.data()) request.wire.assign(wire);
    early_.push_back(&request);
    return;
  }
  owner_.on_failure(request, cause_);
  pool_.release(&request);
}

void Link::send_unanswered(std::string_view wire) {
  if (state_ == State::kUp) return stream_->write(wire);
  early_bytes_.append(wire);
}

void Link::tick(Nanos now) {
  if (overdue_ > 0 && now - last_piece_ > options_.silence &&
      now - last_answer_ > options_.silence) {
    // Whatever holds it up, a new connection may not be held up; the fence ends this one at the
    // server.
    return reset("did not answer for too long");
  }
  // While large answers arrive, however long that takes, those behind them are not late.
  const bool arriving = now - last_piece_ < options_.silence / 3;
  while (!arriving && overdue_ < in_flight_.size() && in_flight_[overdue_]->deadline <= now) {
    if (overdue_ == 0) last_answer_ = now;
    // Counted before the call: the owner may cause the link to be reset.
    Request* request = in_flight_[overdue_++];
    owner_.on_timeout(*request);
  }
  while (!early_.empty() && early_.front()->deadline <= now) {
    Request* request = early_.front();
    early_.pop_front();
    owner_.on_failure(*request, "no connection in time");
    pool_.release(request);
  }
}

size_t Link::on_data(std::string_view data, Nanos now) {
  const size_t size = data.size();
  while (!data.empty()) {
    const proto::Scan scan = scanner_.scan(data);
    if (scan.error) {
      reset("does not speak RESP");
      return size;
    }
    const std::string_view piece = data.substr(0, scan.consumed);
    data.remove_prefix(scan.consumed);
    if (scanner_.type() == '>') {
      push_piece(piece, scan.complete);
    } else {
      answer(piece, scan.complete, now);
    }
    if (stream_ == nullptr) return size;
  }
  return size;
}

void Link::push_piece(std::string_view piece, bool last) {
  if (last && push_.empty()) return owner_.on_push(*this, piece);
  if (push_.size() + piece.size() > kMaxPush) return reset("push too large");
  push_.append(piece);
  if (!last) return;
  const std::string whole = std::move(push_);
  push_.clear();
  owner_.on_push(*this, whole);
}

void Link::answer(std::string_view piece, bool last, Nanos now) {
  if (in_flight_.empty()) return reset("answers more than it was asked");
  Request* request = in_flight_.front();
  if (request->skip > 0) {  // an answer within a block of commands that nobody waits for
    if (last) --request->skip;
    return;
  }
  if (!last) {
    if (piece.size() >= kLargePiece) last_piece_ = now;
    owner_.on_answer(*request, piece, false, now);
    return;
  }
  in_flight_.pop_front();
  if (overdue_ > 0) {
    --overdue_;
    ++late_;
    last_answer_ = now;
  }
  owner_.on_answer(*request, piece, true, now);
  pool_.release(request);
}

void Link::reset(const std::string& cause) {
  if (stream_ != nullptr) stream_->close();
  on_closed(cause);
}

void Link::on_closed(const std::string& cause) {
  loop_.cancel(timer_);
  stream_ = nullptr;
  if (state_ != State::kDown) log_warning("{} is down: {}", options_.address.text(), cause);
  const bool was_down = state_ == State::kDown;
  state_ = State::kDown;
  cause_ = cause;
  client_id_ = 0;
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
  timer_ = loop_.after(pause_, [this] { open(); });
  fail_all(cause);
  if (!was_down) owner_.on_link_down(*this, cause);
}

void Link::fail_all(const std::string& cause) {
  Ring<Request*> lost = std::exchange(in_flight_, {});
  Ring<Request*> early = std::exchange(early_, {});
  overdue_ = 0;
  for (Ring<Request*>* ring : {&lost, &early}) {
    while (!ring->empty()) {
      Request* request = ring->front();
      ring->pop_front();
      owner_.on_failure(*request, cause);
      pool_.release(request);
    }
  }
}

void Link::shut_down() {
  loop_.cancel(timer_);
  if (stream_ != nullptr) stream_->close();
  stream_ = nullptr;
  state_ = State::kDown;
  cause_ = "shutting down";
  fail_all(cause_);
}

}  // namespace ballast::cache
