// SPDX-License-Identifier: Apache-2.0
// A state machine over bytes with an explicit stack; strings and lines are skipped with memchr or
// in one step.
#include "proto/resp_reply.h"

#include <algorithm>
#include <cstring>

#include "proto/resp_number.h"

namespace ballast::proto {

namespace {

bool is_line(char type) { return type == '+' || type == '-' || type == ',' || type == '('; }

// `$n\r\n` + n bytes + CRLF or `$-1\r\n`, whole and at the front of the input: its size, else 0.
size_t whole_bulk(const char* p, size_t size) {
  if (size >= 5 && std::memcmp(p, "$-1\r\n", 5) == 0) return 5;
  if (size < 6 || p[0] != '$' || p[1] < '1' || p[1] > '9') return 0;
  const size_t stop = std::min<size_t>(size - 1, 9);
  size_t length = 0;
  size_t at = 1;
  for (; at < stop && p[at] >= '0' && p[at] <= '9'; ++at) {
    length = length * 10 + static_cast<size_t>(p[at] - '0');
  }
  const size_t total = at + 2 + length + 2;
  if (at >= stop || p[at] != '\r' || p[at + 1] != '\n' || total > size) return 0;
  return p[total - 2] == '\r' && p[total - 1] == '\n' ? total : 0;
}

}  // namespace

Scan ReplyScanner::scan(std::string_view input) {
  const char* const begin = input.data();
  const char* const end = begin + input.size();
  const char* p = begin;
  if (state_ == State::kDone) state_ = State::kElement;
  if (state_ == State::kElement && levels_.empty() && !after_attribute_ && p != end) {
    type_ = *p;
    if (const size_t size = whole_bulk(p, input.size()); size > 0) {
      state_ = State::kDone;
      return {size, true, false};
    }
  }
  while (p != end && state_ < State::kDone) {
    switch (state_) {
      case State::kElement:
        if (is_line(*p) && allowed_here(*p)) {
          ++p;
          after_cr_ = false;
          state_ = State::kLine;
          break;
        }
        header_size_ = 0;
        state_ = State::kHeader;
        [[fallthrough]];
      case State::kHeader:
        p = read_header(p, end);
        break;
      case State::kLine: {
        const char* newline =
            static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
        const char* last = newline == nullptr ? end : newline;
        const bool carriage = last == p ? after_cr_ : last[-1] == '\r';
        after_cr_ = newline == nullptr && carriage;
        p = newline == nullptr ? end : newline + 1;
        if (newline != nullptr && carriage) close_element();
        break;
      }
      default:
        p = skip_payload(p, end);
        break;
    }
  }
  return {static_cast<size_t>(p - begin), state_ == State::kDone, state_ == State::kFailed};
}

// The string's bytes, then CR, then LF.
const char* ReplyScanner::skip_payload(const char* p, const char* end) {
  const uint64_t there = static_cast<uint64_t>(end - p);
  if (payload_left_ > 2) {
    const uint64_t step = std::min(payload_left_ - 2, there);
    p += step;
    payload_left_ -= step;
  }
  while (p != end && payload_left_ > 0) {
    if (*p != (payload_left_ == 2 ? '\r' : '\n')) return fail(p);
    ++p;
    --payload_left_;
  }
  if (payload_left_ > 0) return p;
  state_ = State::kElement;
  // A chunk is no element: its string goes on until the empty chunk.
  const bool chunk = !levels_.empty() && levels_.back().type == '$';
  if (!chunk) close_element();
  return p;
}

// A line of a type byte and a short text. Cut lines gather in header_.
const char* ReplyScanner::read_header(const char* p, const char* end) {
  if (header_size_ == 0) {
    const char* const stop = p + std::min<size_t>(static_cast<size_t>(end - p), header_.size());
    const char* q = p;
    while (q != stop && *q != '\n') ++q;
    if (q != stop) {
      if (!take_header(p[0], p + 1, static_cast<size_t>(q - p) - 1)) return fail(p);
      return q + 1;
    }
  }
  while (p != end) {
    if (header_size_ == header_.size()) return fail(p);
    const char byte = *p++;
    header_[header_size_++] = byte;
    if (byte == '\n') {
      const size_t size = header_size_;
      header_size_ = 0;
      return size >= 2 && take_header(header_[0], header_.data() + 1, size - 2) ? p : fail(p);
    }
  }
  return p;
}

bool ReplyScanner::allowed_here(char type) const {
  if (levels_.empty()) return type != '>' || !after_attribute_;
  return type != '>' && levels_.back().type != '$';
}

// `text` is what stands between the type byte and the LF.
bool ReplyScanner::take_header(char type, const char* text, size_t size) {
  if (type == '\n' || size == 0 || text[size - 1] != '\r') return false;
  --size;
  state_ = State::kElement;
  if (type == ';') return take_length(type, text, size);
  if (type == '.') {
    if (size != 0 || after_attribute_ || levels_.empty()) return false;
    const Level& level = levels_.back();
    if (level.left != kStreamed || level.type == '$' || level.odd) return false;
    levels_.pop_back();
    close_element();
    return true;
  }
  if (!allowed_here(type)) return false;
  switch (type) {
    case ':':
    case '#':
    case '_':
      if (!take_scalar(type, {text, size})) return false;
      close_element();
      return true;
    case '$':
    case '!':
    case '=':
    case '*':
    case '%':
    case '~':
    case '>':
    case '|':
      return take_length(type, text, size);
    default:
      return false;
  }
}

bool ReplyScanner::take_scalar(char type, std::string_view text) {
  if (type == '#') return text == "t" || text == "f";
  if (type == '_') return text.empty();
  if (!text.empty() && text[0] == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text[0] == '-') return false;
  }
  int64_t number = 0;
  return parse_integer(text, number);
}

bool ReplyScanner::take_stream(char type) {
  if (type != '$' && type != '*' && type != '%' && type != '~') return false;
  return open_level(type, kStreamed);
}

bool ReplyScanner::take_length(char type, const char* text, size_t size) {
  const std::string_view digits(text, size);
  if (digits == "?") return take_stream(type);
  int64_t length = 0;
  if (!parse_integer(digits, length)) return false;
  if (length < 0) {
    if (length != -1 || (type != '$' && type != '*')) return false;
    close_element();
    return true;
  }
  switch (type) {
    case ';':
      if (levels_.empty() || levels_.back().type != '$') return false;
      if (length == 0) {
        levels_.pop_back();
        close_element();
        return true;
      }
      break;
    case '=':
      if (length < 4) return false;
      break;
    case '$':
    case '!':
      break;
    default: {
      if (length > kMaxReplyElements) return false;
      const bool pairs = type == '%' || type == '|';
      return open_level(type, static_cast<uint64_t>(length) * (pairs ? 2 : 1));
    }
  }
  if (length > kMaxReplyBulk) return false;
  payload_left_ = static_cast<uint64_t>(length) + 2;
  state_ = State::kPayload;
  return true;
}

bool ReplyScanner::open_level(char type, uint64_t left) {
  after_attribute_ = false;
  if (levels_.size() == kMaxScanDepth) return false;
  if (left > 0) {
    levels_.push_back({left, type, false});
  } else if (type == '|') {
    after_attribute_ = true;
  } else {
    close_element();
  }
  return true;
}

// One element is over; so is every aggregate whose last element it was.
void ReplyScanner::close_element() {
  state_ = State::kElement;
  after_attribute_ = false;
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (level.left == kStreamed) {
      level.odd = level.type == '%' && !level.odd;
      return;
    }
    if (--level.left > 0) return;
    const bool attribute = level.type == '|';
    levels_.pop_back();
    if (attribute) {
      after_attribute_ = true;
      return;
    }
  }
  state_ = State::kDone;
}

}  // namespace ballast::proto
