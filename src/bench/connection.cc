// SPDX-License-Identifier: Apache-2.0
#include "bench/connection.h"

#include <charconv>
#include <utility>

#include "base/check.h"
#include "proto/resp_reply.h"

namespace ballast::bench {
namespace {

constexpr Nanos kRetry = 100 * kMillisecond;

enum class Parsed { kReply, kIncomplete, kBroken };

// Aggregates and pushes: only their end matters.
Parsed parse_other(std::string_view data, Reply& reply, size_t& used) {
  proto::ReplyScanner scanner;
  const proto::Scan scan = scanner.scan(data);
  if (scan.error) return Parsed::kBroken;
  if (!scan.complete) return Parsed::kIncomplete;
  used = scan.consumed;
  reply.type = data.front();
  reply.text = data.substr(0, used);
  return Parsed::kReply;
}

Parsed parse_reply(std::string_view data, Reply& reply, size_t& used) {
  constexpr std::string_view kScalars = "$+-:_#,(";
  if (data.empty()) return Parsed::kIncomplete;
  if (kScalars.find(data.front()) == std::string_view::npos) return parse_other(data, reply, used);
  const size_t end = data.find("\r\n");
  if (end == std::string_view::npos) return Parsed::kIncomplete;
  const std::string_view line = data.substr(1, end - 1);
  reply = {data.front(), data.front() == '_', line};
  used = end + 2;
  if (reply.type != '$') return Parsed::kReply;
  int64_t size = 0;
  const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), size);
  if (error != std::errc() || stop != line.data() + line.size() || size < -1 ||
      size > proto::kMaxReplyBulk) {
    return Parsed::kBroken;
  }
  reply.null = size < 0;
  if (reply.null) return Parsed::kReply;
  const size_t bytes = static_cast<size_t>(size);
  if (data.size() < used + bytes + 2) return Parsed::kIncomplete;
  reply.text = data.substr(used, bytes);
  if (data.substr(used + bytes, 2) != "\r\n") return Parsed::kBroken;
  used += bytes + 2;
  return Parsed::kReply;
}

}  // namespace

Connection::Connection(io::Loop& loop, Director& director, Plan plan)
    : loop_(loop), director_(director), plan_(std::move(plan)) {
  ring_.resize(plan_.depth);
}

Connection::~Connection() { close(); }

void Connection::open() {
  retry_.reset();
  auto fd = io::connect_tcp(plan_.address);
  if (!fd) return lose(fd.error().message);
  auto stream = io::Stream::create(loop_, std::move(*fd), true, this);
  if (!stream) return lose(stream.error().message);
  stream_ = *stream;
}

void Connection::close() {
  if (retry_) loop_.cancel(*retry_);
  retry_.reset();
  if (stream_ != nullptr) std::exchange(stream_, nullptr)->close();
  ready_ = false;
}

void Connection::on_connected() {
  head_ = 0;
  count_ = 0;
  for (uint32_t i = 0; i < plan_.setup_replies; ++i) begin({.begun = now_ns(), .op = Op::kSetup});
  if (plan_.setup_replies == 0) {
    ready_ = true;
    return director_.on_open(*this);
  }
  stream_->write(plan_.setup);
}

std::string& Connection::begin(const Request& request) {
  BALLAST_CHECK(count_ < ring_.size());
  const size_t at = head_ + count_;
  ring_[at < ring_.size() ? at : at - ring_.size()] = request;
  ++count_;
  stream_->flush_later();
  return stream_->out();
}

Request Connection::pop() {
  const Request request = ring_[head_];
  head_ = head_ + 1 == ring_.size() ? 0 : head_ + 1;
  --count_;
  return request;
}

size_t Connection::on_data(std::string_view data, Nanos now) {
  size_t done = 0;
  bool taken = false;
  for (;;) {
    Reply reply;
    size_t used = 0;
    const Parsed parsed = parse_reply(data.substr(done), reply, used);
    if (parsed == Parsed::kIncomplete) break;
    if (parsed == Parsed::kBroken) {
      lose("a reply is not RESP");
      return data.size();
    }
    done += used;
    if (reply.type == '>') continue;  // pushes answer nothing
    if (!take(reply, now)) return data.size();
    taken = true;
  }
  if (taken && ready_) director_.on_room(*this, now);
  return done;
}

// False if the connection is closed now.
bool Connection::take(const Reply& reply, Nanos now) {
  if (count_ == 0) {
    lose("a reply to no request");
    return false;
  }
  const Request request = pop();
  if (request.op != Op::kSetup) {
    director_.on_reply(*this, request, reply, now);
    return stream_ != nullptr;
  }
  if (reply.type == '-') {
    lose(std::string(reply.text));
    return false;
  }
  if (count_ == 0) {
    ready_ = true;
    director_.on_open(*this);
  }
  return stream_ != nullptr;
}

void Connection::on_closed(const std::string& cause) {
  stream_ = nullptr;
  lose(cause);
}

void Connection::on_writable() {
  if (ready_) director_.on_room(*this, now_ns());
}

void Connection::lose(const std::string& cause) {
  close();
  const std::string where = plan_.address.text() + ": " + cause;
  while (count_ > 0) {
    const Request request = pop();
    if (request.op != Op::kSetup) director_.on_lost(*this, &request, where);
  }
  retry_ = loop_.after(kRetry, [this] { open(); });
  director_.on_lost(*this, nullptr, where);
}

}  // namespace ballast::bench
