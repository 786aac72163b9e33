// SPDX-License-Identifier: Apache-2.0
#include "proto/tcp_stream.h"

namespace ballast::proto {
namespace {

// Further ahead than any window in use: the capture lost much, or the peer sent nonsense.
constexpr uint64_t kFarAhead = uint64_t{1} << 24;

}  // namespace

void TcpStream::segment(const TcpSegment& segment, Sink& sink) {
  const uint32_t sequence = segment.sequence + (segment.syn ? 1 : 0);
  // A repeated SYN has the number of the first one; another number is another connection.
  if (segment.syn && !(syn_seen_ && first_ == sequence)) {
    *this = TcpStream();
    known_ = syn_seen_ = true;
    first_ = sequence;
    next_ = (uint64_t{1} << 32) + sequence;
    sink.start();
  }
  if (segment.payload.empty() && segment.missing == 0) return;
  if (!known_) {
    known_ = true;
    next_ = (uint64_t{1} << 32) + sequence;
    sink.gap();
  }
  const auto ahead = static_cast<int32_t>(sequence - static_cast<uint32_t>(next_));
  const uint64_t position = next_ + static_cast<uint64_t>(int64_t{ahead});
  take(position, segment.payload, sink);
  const uint64_t end = position + segment.payload.size() + segment.missing;
  // Bytes that were sent and not captured do not come any more.
  if (segment.missing > 0 && next_ == end - segment.missing) skip_to(end, sink);
}

void TcpStream::take(uint64_t position, std::string_view data, Sink& sink) {
  if (position + data.size() <= next_) return;
  if (position <= next_) {
    data.remove_prefix(next_ - position);
    next_ += data.size();
    sink.bytes(data);
    drain(sink);
    return;
  }
  if (position - next_ > kFarAhead) {
    finish(sink);
    if (next_ < position) skip_to(position, sink);
    return take(position, data, sink);
  }
  std::string& held = waiting_[position];
  if (held.size() < data.size()) {
    waiting_bytes_ += data.size() - held.size();
    held = data;
  }
  if (waiting_bytes_ > kMostWaiting || waiting_.size() > kMostSegments)
    skip_to(waiting_.begin()->first, sink);
}

void TcpStream::skip_to(uint64_t position, Sink& sink) {
  next_ = position;
  sink.gap();
  drain(sink);
}

void TcpStream::drain(Sink& sink) {
  while (!waiting_.empty() && waiting_.begin()->first <= next_) {
    const auto node = waiting_.extract(waiting_.begin());
    std::string_view data = node.mapped();
    waiting_bytes_ -= data.size();
    if (node.key() + data.size() <= next_) continue;
    data.remove_prefix(next_ - node.key());
    next_ += data.size();
    sink.bytes(data);
  }
}

void TcpStream::finish(Sink& sink) {
  while (!waiting_.empty()) skip_to(waiting_.begin()->first, sink);
}

}  // namespace ballast::proto
