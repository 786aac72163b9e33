// SPDX-License-Identifier: Apache-2.0
#include "cache/client.h"

#include "cache/router.h"
#include "cache/session.h"
#include "proto/resp_write.h"

namespace ballast::cache {
Client::Client(Router& router, uint64_t id) : router_(router), id_(id), since_(now_ns()) {
  set_authenticated(!router.needs_password());
  plain = authenticated_;
}

Client::~Client() = default;

void Client::set_authenticated(bool authenticated) {
  authenticated_ = authenticated;
  parser_.set_limits(&router_.command_limits(*this));
}

template <typename Bytes>
void Client::write(Bytes&& bytes) {
  router_.metrics().sent_bytes += bytes.size();
  stream_->write(std::forward<Bytes>(bytes));
}

Session& Client::session() {
  if (!session_) session_ = std::make_unique<Session>();
  return *session_;
}

size_t Client::on_data(std::string_view data, Nanos now) {
  size_t used = 0;
  last_active_ = now;
  while (used < data.size()) {
    if (closing_) return data.size();
    if (stalled_ || must_wait()) {
      stall();
      // Output that leaves at the end of this turn may be all it waits for.
      router_.loop().defer(this);
      break;
    }
    const std::string_view rest = data.substr(used);
    const auto status = parser_.parse(rest);
    if (status == proto::CommandParser::Status::kNeedMore) break;
    if (status == proto::CommandParser::Status::kError) {
      ++router_.metrics().protocol_errors;
      error("ERR " + std::string(parser_.error()));
      close_after_replies();
      return data.size();
    }
    const std::string_view wire = rest.substr(0, parser_.consumed());
    wire_bytes_ = wire.size();
    if (!router_.execute(*this, parser_.args(), parser_.is_inline() ? std::string_view() : wire,
                         now)) {
      if (!closed_) stall();
      break;
    }
    used += wire.size();
  }
  wire_bytes_ = 0;
  router_.metrics().received_bytes += used;
  unread_bytes_ = data.size() - used;
  router_.count_held(*this);
  return used;
}

bool Client::on_end() {
  if (pending_.empty() ? stream_->buffered() == 0 : pending_.front()->blocking) return false;
  close_after_replies();
  return true;
}

size_t Client::held() const {
  return (stream_ != nullptr ? stream_->buffered() : 0) + held_bytes_ + asked_bytes_ +
         unread_bytes_;
}

void Client::hold_part(Request& request, size_t bytes) {
  request.part_bytes += bytes;
  held_bytes_ += bytes;
  check_output();
}

bool Client::must_wait() const {
  return blocked_ || pending_.size() >= kMaxPending || asked_bytes_ > kMaxAsked ||
         stream_->buffered() > io::Stream::kHighMark || held_bytes_ > io::Stream::kHighMark;
}

void Client::stall() {
  stalled_ = true;
  stream_->pause_reading();
}

void Client::on_turn_end() {
  if (!closed_ && over_limit()) {
    ++router_.metrics().clients_closed_slow;
    return close("output limit: the client reads too slowly");
  }
  if (closed_ || !stalled_ || must_wait()) return;
  stalled_ = false;
  stream_->resume_reading();
}

void Client::unblock() {
  blocked_ = false;
  router_.loop().defer(this);
}

void Client::on_writable() { router_.loop().defer(this); }

void Client::reply(std::string_view whole) {
  if (closed_) return;
  if (pending_.empty() && (session_ == nullptr || !session_->mute())) [[likely]] {
    write(whole);
    return;
  }
  Request& request = expect(Path::kNone, 0);
  on_answer(request, whole, true);
}

void Client::error(std::string_view text) {
  ++router_.metrics().command_errors;
  std::string whole;
  proto::append_error(whole, text);
  reply(whole);
}

Request& Client::expect(Path path, uint64_t hash) {
  Request* request = router_.pool().take();
  router_.pool().hold(request);
  request->client = this;
  request->proto = proto;
  request->path = path;
  request->hash = hash;
  request->off_path = path == Path::kHome || path == Path::kNode;
  request->wire_bytes = wire_bytes_;
  asked_bytes_ += wire_bytes_;
  request->muted = session_ != nullptr && session_->mute();
  if (request->off_path) ++off_path_;
  add_pending(request);
  return *request;
}

void Client::add_pending(Request* request) {
  pending_.push_back(request);
  if (pending_keys_ != nullptr) {
    if (request->path != Path::kNone) pending_keys_->add(request->hash);
    return;
  }
  if (pending_.size() <= kFew) return;
  pending_keys_ = std::make_unique<PendingKeys>();
  for (size_t i = 0; i < pending_.size(); ++i) {
    const Request& each = *pending_[i];
    if (each.path != Path::kNone && !each.complete) pending_keys_->add(each.hash);
  }
}

void Client::leaves_path(Request& request) {
  if (request.off_path) return;
  request.off_path = true;
  ++off_path_;
}

void Client::on_answer(Request& request, std::string_view piece, bool last) {
  if (closed_) return;
  if (last && pending_keys_ != nullptr && request.path != Path::kNone)
    pending_keys_->remove(request.hash);
  if (pending_.front() == &request) {
    if (!request.muted) write(piece);
    request.streamed = true;
    if (last) {
      finish(request);
      drain();
    }
  } else {
    if (!request.muted) {
      request.reply.append(piece);
      held_bytes_ += piece.size();
    }
    request.complete = last;
  }
  check_output();
}

void Client::finish(Request& request) {
  pending_.pop_front();
  if (request.off_path) --off_path_;
  asked_bytes_ -= request.wire_bytes;
  held_bytes_ -= request.part_bytes;
  request.client = nullptr;
  router_.pool().release(&request);
}

void Client::drain() {
  while (!pending_.empty()) {
    Request& request = *pending_.front();
    held_bytes_ -= request.reply.size();
    if (!request.reply.empty()) {
      write(std::move(request.reply));
      request.reply.clear();
      request.streamed = true;
    }
    if (!request.complete) {  // what came so far has left; the rest is passed on as it comes
      break;
    }
    finish(request);
  }
  if (pending_.empty()) pending_keys_.reset();
  pending_.shrink_if_empty(64);
  if (closing_ && pending_.empty()) return stream_->close_after_flush();
  if (stalled_) router_.loop().defer(this);
}

void Client::push(std::string_view bytes) {
  if (closed_) return;
  // Between two replies, never within one.
  if (pending_.empty() || !pending_.front()->streamed) {
    write(bytes);
    check_output();
    return;
  }
  Request* request = router_.pool().take();
  router_.pool().hold(request);
  request->client = this;
  request->complete = true;
  request->reply.assign(bytes);
  held_bytes_ += bytes.size();
  pending_.push_back(request);
}

bool Client::overtakes(uint64_t hash) const {
  if (off_path_ == 0) return false;
  if (hash == 0) return true;
  if (pending_keys_ != nullptr) return pending_keys_->may_contain(hash);
  for (size_t i = 0; i < pending_.size(); ++i) {
    const Request& request = *pending_[i];
    if (request.off_path && (request.hash == hash || request.hash == 0)) return true;
  }
  return false;
}

bool Client::key_pending(uint64_t hash) const {
  if (pending_keys_ != nullptr) return pending_keys_->may_contain(hash);
  for (size_t i = 0; i < pending_.size(); ++i) {
    const Request& request = *pending_[i];
    if (!request.complete && (request.hash == hash || request.hash == 0)) return true;
  }
  return false;
}

bool Client::over_limit() const {
  return stream_->buffered() + held_bytes_ > router_.client_output_limit();
}

// It is closed at the end of the turn: now, callers of all kinds are at work on it.
void Client::check_output() {
  if (over_limit()) return router_.loop().defer(this);
  router_.count_held(*this);
}

void Client::forget_pending() {
  pending_keys_.reset();
  while (!pending_.empty()) {
    Request* request = pending_.front();
    pending_.pop_front();
    request->client = nullptr;
    router_.pool().release(request);
  }
}

void Client::close(std::string_view why) {
  if (closed_) return;
  stream_->close();
  on_closed(std::string(why));
}

void Client::close_after_replies() {
  closing_ = true;
  if (pending_.empty()) stream_->close_after_flush();
}

void Client::on_closed(const std::string& cause) {
  closed_ = closing_ = true;
  stream_ = nullptr;
  forget_pending();
  asked_bytes_ = held_bytes_ = unread_bytes_ = 0;
  router_.on_client_gone(*this, cause);
}

}  // namespace ballast::cache
