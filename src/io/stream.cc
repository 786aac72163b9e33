// SPDX-License-Identifier: Apache-2.0
#include "io/stream.h"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace ballast::io {
namespace {

constexpr int kReadsPerTurn = 16;  // then others get their turn
constexpr size_t kDirectRead =
    32 * 1024;  // with more than this kept, read behind it without a second copy
constexpr size_t kKeepCapacity = 8 * 1024;

std::string errno_text(int error) {
  return std::error_code(error, std::generic_category()).message();
}

// An idle connection must not pin the memory of its busiest moment.
void release_if_large(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kKeepCapacity) std::string().swap(buffer);
}

}  // namespace

Result<Stream*> Stream::create(Loop& loop, Fd fd, bool connecting, StreamSink* sink,
                               std::shared_ptr<TlsContext> tls) {
  std::unique_ptr<Stream> stream(new Stream(loop, std::move(fd), connecting, sink, std::move(tls)));
  const auto added = loop.add(stream->fd_.get(), stream.get());
  if (!added) return Unexpected(added.error());
  Stream* made = stream.release();
  if (made->tls_) {
    made->handshake_ = loop.after(kHandshakeTime, [made] {
      if (!made->tls_->established()) made->broken("TLS: no handshake in time");
    });
  }
  return made;
}

Stream::Stream(Loop& loop, Fd fd, bool connecting, StreamSink* sink,
               std::shared_ptr<TlsContext> tls)
    : loop_(loop), fd_(std::move(fd)), sink_(sink), connected_(!connecting) {
  if (tls) tls_ = std::make_unique<TlsSession>(std::move(tls));
}

void Stream::on_ready(uint32_t events) {
  if (closed_) return;
  if (!connected_) {
    finish_connect();
    if (closed_ || !connected_) return;
  }
  if ((events & EPOLLOUT) != 0 && buffered() > 0) flush();
  if (closed_) return;
  if (closing_ && (events & (EPOLLHUP | EPOLLERR)) != 0) return broken("closed by the peer");
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
    read_some((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
}

void Stream::finish_connect() {
  const int error = pending_error(fd_.get());
  if (error != 0) return broken(errno_text(error));
  sockaddr_storage peer;
  socklen_t length = sizeof peer;
  if (getpeername(fd_.get(), reinterpret_cast<sockaddr*>(&peer), &length) != 0) return;
  connected_ = true;
  sink_->on_connected();
  if (!closed_ && buffered() > 0) flush_later();
}

void Stream::read_some(bool until_end) {
  if (redeliver_ && reading_) {
    redeliver_ = false;
    if (!in_.empty() && !deliver({})) return;
  }
  for (int i = 0; i < kReadsPerTurn; ++i) {
    if (closed_ || closing_) return;
    if (!reading_) return;  // resume_reading() looks again
    const bool direct = tls_ == nullptr && in_.size() >= kDirectRead;
    const size_t kept = in_.size();
    char* target = loop_.scratch();
    if (direct) {
      in_.resize(kept + Loop::kScratchSize);
      target = in_.data() + kept;
    }
    const ssize_t got = recv(fd_.get(), target, Loop::kScratchSize, 0);
    if (direct) in_.resize(kept + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) {
      if (!sink_->on_end()) broken("closed by the peer");
      return;
    }
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      return broken(errno_text(errno));
    }
    const std::string_view fresh(target, static_cast<size_t>(got));
    if (!(tls_ ? deliver_tls(fresh) : deliver(direct ? std::string_view() : fresh))) return;
    // A short read has emptied the socket; only a pending hang-up is worth another call.
    if (fresh.size() < Loop::kScratchSize && !until_end) return;
  }
  loop_.again(this, EPOLLIN | (until_end ? EPOLLRDHUP : 0U));
}

bool Stream::deliver(std::string_view fresh) {
  if (in_.empty()) {
    const size_t used = sink_->on_data(fresh, now_ns());
    if (closed_) return false;
    keep(fresh.substr(used));
    return true;
  }
  in_.append(fresh);
  const size_t used = sink_->on_data(in_, now_ns());
  if (closed_) return false;
  if (used == in_.size()) {
    release_if_large(in_);
  } else if (used > 0) {
    in_.erase(0, used);
  }
  return true;
}

bool Stream::deliver_tls(std::string_view encrypted) {
  std::string plain;
  const bool alive = tls_->receive(encrypted, plain);
  flush_later();  // handshake answers
  if (!plain.empty() && !deliver(plain)) return false;
  if (!alive) {
    flush();
    if (!closed_) broken("TLS: closed by the peer or broken");
    return false;
  }
  return true;
}

void Stream::keep(std::string_view rest) {
  if (!rest.empty()) in_.assign(rest);
}

void Stream::resume_reading() {
  if (reading_ || closed_) return;
  reading_ = true;
  // Input kept here gives no event of its own, and one may have been passed over.
  redeliver_ = true;
  loop_.again(this, EPOLLIN | EPOLLRDHUP);
}

// False: closed. `sent` is left short of the size if the socket is full.
bool Stream::send_buffer(const std::string& buffer, size_t& sent) {
  while (sent < buffer.size()) {
    const ssize_t put = send(fd_.get(), buffer.data() + sent, buffer.size() - sent, MSG_NOSIGNAL);
    if (put < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return true;
      broken(errno_text(errno));
      return false;
    }
    sent += static_cast<size_t>(put);
  }
  return true;
}

void Stream::head_done() {
  sent_ = 0;
  if (backlog_.empty()) return release_if_large(out_);
  backlog_bytes_ -= backlog_.front().size();
  backlog_.erase(backlog_.begin());
  if (backlog_.empty()) std::vector<std::string>().swap(backlog_);
}

// What was collected becomes a chunk of the backlog: a growing string would be copied ever again,
// and freed only when all of it is sent.
void Stream::shelve() {
  if (out_.empty()) return;
  backlog_bytes_ += out_.size();
  backlog_.push_back(std::exchange(out_, {}));
}

void Stream::write(std::string&& bytes) {
  if (bytes.size() < kLowMark) return write(std::string_view(bytes));
  shelve();
  backlog_bytes_ += bytes.size();
  backlog_.push_back(std::move(bytes));
  flush_later();
}

bool Stream::send_plain() {
  for (;;) {
    const std::string& data = head();
    if (!send_buffer(data, sent_)) return false;
    if (sent_ < data.size()) return true;
    const bool last = backlog_.empty();
    head_done();
    if (last) return true;
  }
}

bool Stream::send_encrypted() {
  for (;;) {
    tls_->take_output(encrypted_);
    if (!send_buffer(encrypted_, encrypted_sent_)) return false;
    if (encrypted_sent_ < encrypted_.size()) return true;
    release_if_large(encrypted_);
    encrypted_sent_ = 0;
    if (!tls_->established()) return true;
    while (!backlog_.empty() && sent_ == head().size()) head_done();
    // No more is encrypted ahead than the socket may take at once.
    const std::string_view piece = std::string_view(head()).substr(sent_, kLowMark);
    if (piece.empty()) return true;
    if (!tls_->send(piece)) {
      broken("TLS: broken");
      return false;
    }
    sent_ += piece.size();
    if (sent_ == head().size()) head_done();
  }
}

void Stream::flush() {
  if (!connected_ || closed_) return;
  if (!(tls_ ? send_encrypted() : send_plain())) return;
  if (out_.size() > kHighMark) shelve();
  const size_t left = buffered();
  if (left == 0 && closing_) return finish_closing();
  if (left > kHighMark) above_low_ = true;
  if (above_low_ && left < kLowMark) {
    above_low_ = false;
    sink_->on_writable();
  }
}

void Stream::finish_closing() {
  if (tls_) {
    tls_->shut_down();
    if (!send_encrypted()) return;
  }
  broken("closed after the last reply");
}

void Stream::on_turn_end() { flush(); }

void Stream::broken(const std::string& cause) {
  if (closed_) return;
  StreamSink* sink = sink_;
  close();
  sink->on_closed(cause);
}

void Stream::close() {
  if (closed_) return;
  closed_ = true;
  loop_.cancel(handshake_);
  loop_.remove(fd_.get());
  fd_.reset();
  loop_.dispose(std::unique_ptr<Loop::Disposable>(this));
}

void Stream::close_after_flush() {
  if (closed_) return;
  closing_ = true;
  flush_later();
}

}  // namespace ballast::io
