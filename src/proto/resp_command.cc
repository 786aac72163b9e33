// SPDX-License-Identifier: Apache-2.0
// Redis's order of checks is kept, so that a bad request gets the same error text from both.
#include "proto/resp_command.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "proto/resp_number.h"

namespace ballast::proto {

namespace {

constexpr size_t kKeptArguments = 64;  // room for more is given back after the command
constexpr size_t kKeptText = 256;
constexpr int64_t kUnauthenticatedArgs = 10;
constexpr int64_t kUnauthenticatedBulk = 16384;

}  // namespace

CommandParser::Cold& CommandParser::cold() {
  if (!cold_) cold_ = std::make_unique<Cold>();
  return *cold_;
}

CommandParser::Status CommandParser::fail(std::string text) {
  args_ = {};
  cold_ = std::make_unique<Cold>();
  cold_->error = std::move(text);
  state_ = State::kFailed;
  wanted_ = 0;
  return Status::kError;
}

void CommandParser::begin() {
  if (args_.capacity() > kKeptArguments) args_ = {};
  args_.clear();
  if (cold_) {
    if (cold_->ranges.capacity() > kKeptArguments || cold_->text.capacity() > kKeptText) {
      cold_.reset();
    } else {
      cold_->ranges.clear();
    }
  }
  position_ = 0;
  searched_ = 0;
  wanted_ = 0;
  bulk_ = -1;
  inline_ = false;
  state_ = State::kStart;
}

CommandParser::Status CommandParser::parse(std::string_view buffer) {
  if (state_ == State::kDone) begin();
  switch (state_) {
    case State::kArguments:
      return parse_arguments(buffer);
    case State::kFailed:
      return Status::kError;
    default:
      return parse_start(buffer);
  }
}

CommandParser::Status CommandParser::parse_start(std::string_view buffer) {
  if (buffer.empty()) return Status::kNeedMore;
  if (buffer[0] != '*') return parse_inline(buffer);
  int64_t count = 0;
  switch (read_length(buffer, false, count)) {
    case Step::kMore:
      return Status::kNeedMore;
    case Step::kError:
      return Status::kError;
    case Step::kOk:
      break;
  }
  if (count <= 0) return complete(buffer);
  args_left_ = static_cast<uint32_t>(count);
  state_ = State::kArguments;
  return parse_arguments(buffer);
}

CommandParser::Status CommandParser::parse_arguments(std::string_view buffer) {
  while (args_left_ > 0) {
    if (bulk_ < 0) {
      Step step = read_length(buffer, true, bulk_);
      if (step == Step::kError) return Status::kError;
      if (step == Step::kMore) return suspend(buffer);
    }
    size_t size = static_cast<size_t>(bulk_);
    if (buffer.size() - position_ < size + 2) return suspend(buffer);
    const char* data = buffer.data() + position_;
    if (data[size] != '\r' || data[size + 1] != '\n') {
      return fail("Protocol error: bulk string without CRLF at its end");
    }
    args_.emplace_back(data, size);
    position_ += size + 2;
    searched_ = position_;
    bulk_ = -1;
    --args_left_;
  }
  return complete(buffer);
}

// Reads the header line at position_; on kOk position_ is behind it.
CommandParser::Step CommandParser::read_length(std::string_view buffer, bool bulk,
                                               int64_t& length) {
  const char* const start = buffer.data() + position_;
  const char* const end = buffer.data() + buffer.size();
  // One to seven digits and the line end, all there: nearly every header.
  if (end - start >= 4 && start[0] == (bulk ? '$' : '*') && start[1] >= '1' && start[1] <= '9')
      [[likely]] {
    const char* p = start + 1;
    const char* const stop = std::min(end - 1, start + 8);
    int64_t number = 0;
    while (p < stop && *p >= '0' && *p <= '9') number = number * 10 + (*p++ - '0');
    if (p < stop && p[0] == '\r' && p[1] == '\n') [[likely]] {
      length = number;
      position_ += static_cast<size_t>(p - start) + 2;
      return check_length(bulk, number);
    }
  }
  return read_length_slow(buffer, bulk, length);
}

CommandParser::Step CommandParser::read_length_slow(std::string_view buffer, bool bulk,
                                                    int64_t& length) {
  const size_t from = std::max(searched_, position_);
  const size_t stop = std::min(buffer.size(), position_ + limits_->max_inline + 1);
  const void* found = from < stop ? std::memchr(buffer.data() + from, '\r', stop - from) : nullptr;
  if (found == nullptr) {
    searched_ = stop;
    if (stop - position_ <= limits_->max_inline) return Step::kMore;
    fail(bulk ? "Protocol error: too big bulk count string"
              : "Protocol error: too big mbulk count string");
    return Step::kError;
  }
  const size_t line_end = static_cast<size_t>(static_cast<const char*>(found) - buffer.data());
  searched_ = line_end;
  if (line_end + 1 >= buffer.size()) return Step::kMore;
  if (bulk && buffer[position_] != '$') {
    fail(std::string("Protocol error: expected '$', got '") + buffer[position_] + "'");
    return Step::kError;
  }
  int64_t number = 0;
  const bool valid =
      parse_integer(buffer.substr(position_ + 1, line_end - position_ - 1), number) &&
      buffer[line_end + 1] == '\n';
  const int64_t least = bulk ? 0 : std::numeric_limits<int64_t>::min();
  if (!valid || number < least) {
    fail(bulk ? "Protocol error: invalid bulk length" : "Protocol error: invalid multibulk length");
    return Step::kError;
  }
  length = number;
  position_ = line_end + 2;
  searched_ = position_;
  return check_length(bulk, number);
}

CommandParser::Step CommandParser::check_length(bool bulk, int64_t length) {
  const char* text = nullptr;
  if (bulk) {
    if (length > limits_->max_bulk) {
      text = "Protocol error: invalid bulk length";
    } else if (limits_->unauthenticated && length > kUnauthenticatedBulk) {
      text = "Protocol error: unauthenticated bulk length";
    } else if (position_ + static_cast<size_t>(length) + 2 > limits_->max_total) {
      text = "Protocol error: too big request";
    }
  } else if (length > limits_->max_args || length > std::numeric_limits<int32_t>::max()) {
    text = "Protocol error: invalid multibulk length";
  } else if (limits_->unauthenticated && length > kUnauthenticatedArgs) {
    text = "Protocol error: unauthenticated multibulk length";
  }
  if (text == nullptr) [[likely]]
    return Step::kOk;
  fail(text);
  return Step::kError;
}

// The buffer may move before the next call: views become offsets.
CommandParser::Status CommandParser::suspend(std::string_view buffer) {
  if (!args_.empty()) {
    std::vector<Range>& ranges = cold().ranges;
    for (std::string_view arg : args_) {
      ranges.push_back({static_cast<size_t>(arg.data() - buffer.data()), arg.size()});
    }
    args_.clear();
  }
  wanted_ = bulk_ < 0 ? 0 : position_ + static_cast<size_t>(bulk_) + 2 - buffer.size();
  return Status::kNeedMore;
}

CommandParser::Status CommandParser::complete(std::string_view buffer) {
  if (cold_ && !cold_->ranges.empty()) {
    std::vector<std::string_view> all;
    all.reserve(cold_->ranges.size() + args_.size());
    for (const Range& range : cold_->ranges) {
      all.push_back(buffer.substr(range.offset, range.size));
    }
    all.insert(all.end(), args_.begin(), args_.end());
    args_ = std::move(all);
    cold_->ranges.clear();
  }
  wanted_ = 0;
  state_ = State::kDone;
  return Status::kCommand;
}

CommandParser::Status CommandParser::parse_inline(std::string_view buffer) {
  const size_t stop = std::min(buffer.size(), limits_->max_inline + 1);
  const void* found =
      searched_ < stop ? std::memchr(buffer.data() + searched_, '\n', stop - searched_) : nullptr;
  if (found == nullptr) {
    searched_ = stop;
    if (stop <= limits_->max_inline) return Status::kNeedMore;
    return fail("Protocol error: too big inline request");
  }
  const size_t newline = static_cast<size_t>(static_cast<const char*>(found) - buffer.data());
  const size_t size = newline > 0 && buffer[newline - 1] == '\r' ? newline - 1 : newline;
  if (!split_inline(buffer.substr(0, size), cold().text, args_)) {
    return fail("Protocol error: unbalanced quotes in request");
  }
  if (limits_->unauthenticated && args_.size() > static_cast<size_t>(kUnauthenticatedArgs)) {
    return fail("Protocol error: unauthenticated multibulk length");
  }
  inline_ = true;
  position_ = newline + 1;
  return complete(buffer);
}

}  // namespace ballast::proto
