// SPDX-License-Identifier: Apache-2.0
#include "proto/request_stream.h"

#include <algorithm>

namespace ballast::proto {
namespace {

constexpr CommandLimits kLimits{.max_total = size_t{1} << 30};
constexpr size_t kMostDigits = 7;
constexpr size_t kMostName = 32;

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_name(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '.' ||
         byte == '_' || byte == '-' || is_digit(byte);
}

enum class Look : uint8_t { kYes, kNever, kMore };

// Takes "<type><number>\r\n" off.
Look take_header(std::string_view& text, char type, size_t& number) {
  if (text.empty()) return Look::kMore;
  if (text[0] != type) return Look::kNever;
  size_t at = 1;
  number = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    if (at > kMostDigits) return Look::kNever;
    number = number * 10 + static_cast<size_t>(text[at] - '0');
  }
  constexpr std::string_view kEnd = "\r\n";
  const std::string_view end = text.substr(at, 2);
  if (end != kEnd.substr(0, end.size()) || (at == 1 && !end.empty())) return Look::kNever;
  if (end.size() < 2) return Look::kMore;
  text.remove_prefix(at + 2);
  return Look::kYes;
}

// "*3\r\n$3\r\nSET\r\n": an array whose first element can be a command's name.
Look looks_like_command(std::string_view text) {
  size_t args = 0;
  size_t size = 0;
  for (const auto& [type, number] : {std::pair{'*', &args}, std::pair{'$', &size}}) {
    const Look look = take_header(text, type, *number);
    if (look != Look::kYes) return look;
    if (*number == 0) return Look::kNever;
  }
  if (size > kMostName) return Look::kNever;
  const std::string_view name = text.substr(0, size);
  if (!std::all_of(name.begin(), name.end(), is_name)) return Look::kNever;
  if (text.size() < size + 2) return Look::kMore;
  return text[size] == '\r' && text[size + 1] == '\n' ? Look::kYes : Look::kNever;
}

}  // namespace

RequestStream::RequestStream() : parser_(&kLimits) {}

void RequestStream::forget(bool in_step) {
  buffer_.clear();
  parser_ = CommandParser(&kLimits);
  skip_ = 0;
  in_step_ = in_step;
}

void RequestStream::start() { forget(true); }

void RequestStream::gap() {
  forget(false);
  ++losses_;
}

void RequestStream::bytes(std::string_view data, const Command& command) {
  const size_t skipped = std::min(skip_, data.size());
  skip_ -= skipped;
  data.remove_prefix(skipped);
  if (data.empty() && skipped > 0 && skip_ > 0) return;
  buffer_.append(data);
  parse(command);
  if (buffer_.capacity() > kMostCommand / 16 && buffer_.empty()) buffer_.shrink_to_fit();
}

void RequestStream::parse(const Command& command) {
  size_t done = 0;
  while (in_step_ || find_start()) {
    const std::string_view rest = std::string_view(buffer_).substr(done);
    const CommandParser::Status status = parser_.parse(rest);
    if (status == CommandParser::Status::kCommand) {
      if (!parser_.args().empty()) command(parser_.args());
      done += parser_.consumed();
      continue;
    }
    buffer_.erase(0, done);
    done = 0;
    if (status == CommandParser::Status::kNeedMore) {
      if (parser_.wanted() > kMostArgument) {
        drop_large_argument();
        if (skip_ > 0) return;
        continue;
      }
      if (buffer_.size() <= kMostCommand) return;
    }
    // No command, or one too long: what was understood of it goes.
    const size_t bad =
        std::clamp<size_t>(parser_.consumed(), 1, std::max<size_t>(1, buffer_.size()));
    std::string rest_of_it = buffer_.substr(std::min(bad, buffer_.size()));
    gap();
    buffer_ = std::move(rest_of_it);
  }
  buffer_.erase(0, done);
}

// The argument that is being received becomes an empty one, and its bytes to come are skipped.
void RequestStream::drop_large_argument() {
  const size_t wanted = parser_.wanted();
  const size_t header = buffer_.rfind('$', parser_.consumed() - 1);
  buffer_.resize(header);
  buffer_ += "$0\r\n\r\n";
  parser_ = CommandParser(&kLimits);
  skip_ = wanted;
}

// Drops what cannot belong to a command; true if the buffer then begins with one.
bool RequestStream::find_start() {
  size_t at = 0;
  for (; (at = buffer_.find('*', at)) != std::string::npos; ++at) {
    const Look look = looks_like_command(std::string_view(buffer_).substr(at));
    if (look == Look::kNever) continue;
    buffer_.erase(0, at);
    in_step_ = look == Look::kYes;
    return in_step_;
  }
  buffer_.clear();
  return false;
}

}  // namespace ballast::proto
