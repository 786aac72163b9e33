// SPDX-License-Identifier: Apache-2.0
// A recursive parser, its depth bounded; it takes what ReplyScanner takes, and looks into doubles.
#include "proto/resp_value.h"

#include <charconv>
#include <cmath>

#include "proto/resp_number.h"
#include "proto/resp_reply.h"
#include "proto/resp_write.h"

namespace ballast::proto {

namespace {

constexpr size_t kMaxHeaderLine = 32;  // as ReplyScanner's header buffer
constexpr int64_t kStreamed = -2;

bool parse_double(std::string_view text, double& number) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == end;
}

class ValueParser {
 public:
  explicit ValueParser(std::string_view input) : input_(input) {}

  bool parse_reply(Value& value, size_t depth);
  bool at_end() const { return at_ == input_.size(); }
  size_t offset() const { return at_; }

 private:
  bool parse_plain(Value& value, char type, size_t depth);
  bool parse_line(Value& value);
  bool parse_string(Value& value);
  bool parse_chunks(Value& value, size_t depth);
  bool parse_children(std::vector<Value>& children, char type, int64_t count, size_t depth);
  bool parse_streamed(Value& value, size_t depth);
  bool take_header(std::string_view& text);
  bool take_length(int64_t& length);
  bool take_bytes(int64_t length, std::string& bytes);

  std::string_view input_;
  size_t at_ = 0;
};

// The rest of a short line.
bool ValueParser::take_header(std::string_view& text) {
  const std::string_view line = input_.substr(at_, kMaxHeaderLine - 1);
  const size_t newline = line.find('\n');
  if (newline == std::string_view::npos || newline == 0 || line[newline - 1] != '\r') return false;
  text = line.substr(0, newline - 1);
  at_ += newline + 1;
  return true;
}

bool ValueParser::take_length(int64_t& length) {
  std::string_view text;
  if (!take_header(text)) return false;
  if (text == "?") {
    length = kStreamed;
    return true;
  }
  return parse_integer(text, length) && length >= -1;
}

bool ValueParser::take_bytes(int64_t length, std::string& bytes) {
  if (length < 0 || length > kMaxReplyBulk) return false;
  const size_t size = static_cast<size_t>(length);
  if (input_.size() - at_ < size + 2 || input_.substr(at_ + size, 2) != "\r\n") return false;
  bytes.append(input_.substr(at_, size));
  at_ += size + 2;
  return true;
}

// One reply and the attributes before it, inside `depth` aggregates.
bool ValueParser::parse_reply(Value& value, size_t depth) {
  value.null = false;
  while (at_ < input_.size()) {
    const char type = input_[at_++];
    if (type != '|') {
      if (type == '>' && (depth > 0 || input_[0] == '|')) return false;
      return parse_plain(value, type, depth);
    }
    int64_t pairs = 0;
    if (!take_length(pairs) || pairs < 0) return false;
    if (!parse_children(value.attributes, type, pairs, depth)) return false;
  }
  return false;
}

bool ValueParser::parse_plain(Value& value, char type, size_t depth) {
  value.type = type;
  std::string_view text;
  switch (type) {
    case '+':
    case '-':
    case '(':
    case ',':
      return parse_line(value);
    case ':':
      if (!take_header(text)) return false;
      if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
      return parse_integer(text, value.integer);
    case '#':
      if (!take_header(text)) return false;
      value.integer = text == "t" ? 1 : 0;
      return text == "t" || text == "f";
    case '_':
      value.null = true;
      return take_header(text) && text.empty();
    case '$':
    case '!':
    case '=':
    case '*':
    case '%':
    case '~':
    case '>':
      break;
    default:
      return false;
  }
  int64_t length = 0;
  if (!take_length(length)) return false;
  if (length == kStreamed) return parse_streamed(value, depth);
  if (length == -1) {
    value.null = true;
    return type == '$' || type == '*';
  }
  if (value.is_aggregate()) return parse_children(value.children, type, length, depth);
  return (type != '=' || length >= 4) && take_bytes(length, value.string);
}

bool ValueParser::parse_line(Value& value) {
  const size_t end = input_.find("\r\n", at_);
  if (end == std::string_view::npos) return false;
  value.string = input_.substr(at_, end - at_);
  at_ = end + 2;
  return value.type != ',' || parse_double(value.string, value.number);
}

bool ValueParser::parse_children(std::vector<Value>& children, char type, int64_t count,
                                 size_t depth) {
  if (count > kMaxReplyElements || depth >= kMaxReplyDepth) return false;
  for (int64_t left = type == '%' || type == '|' ? 2 * count : count; left > 0; --left) {
    if (!parse_reply(children.emplace_back(), depth + 1)) return false;
  }
  return true;
}

bool ValueParser::parse_streamed(Value& value, size_t depth) {
  if (depth >= kMaxReplyDepth) return false;
  if (value.type == '$') return parse_chunks(value, depth);
  if (value.type != '*' && value.type != '%' && value.type != '~') return false;
  while (input_.substr(at_, 3) != ".\r\n") {
    if (!parse_reply(value.children.emplace_back(), depth + 1)) return false;
  }
  at_ += 3;
  return value.type != '%' || value.children.size() % 2 == 0;
}

bool ValueParser::parse_chunks(Value& value, size_t) {
  while (at_ < input_.size() && input_[at_] == ';') {
    ++at_;
    int64_t length = 0;
    if (!take_length(length) || length < 0) return false;
    if (length == 0) return true;
    if (!take_bytes(length, value.string)) return false;
  }
  return false;
}

}  // namespace

Result<Value> parse_value(std::string_view reply) {
  Value value;
  ValueParser parser(reply);
  if (!parser.parse_reply(value, 0) || !parser.at_end()) {
    return fail(ErrorCode::kInvalid,
                "malformed RESP reply at byte " + std::to_string(parser.offset()));
  }
  return value;
}

namespace {

void append_aggregate(std::string& out, const Value& value, int proto) {
  const size_t count = value.children.size();
  switch (value.type) {
    case '%':
      append_map_header(out, count / 2, proto);
      break;
    case '~':
      append_set_header(out, count, proto);
      break;
    case '>':
      append_push_header(out, count, proto);
      break;
    default:
      append_array_header(out, count);
      break;
  }
  for (const Value& child : value.children) append_value(out, child, proto);
}

void append_null_value(std::string& out, const Value& value, int proto) {
  if (value.type == '*') {
    out += "*-1\r\n";
  } else if (value.type == '$') {
    out += "$-1\r\n";
  } else {
    append_null(out, proto);
  }
}

// A type that RESP2 lacks: as a bulk string there.
void append_text(std::string& out, const Value& value, int proto) {
  const std::string_view text = value.string;
  if (value.type == '=') {
    if (proto < 3) return append_bulk(out, text.substr(std::min<size_t>(4, text.size())));
    append_header(out, '=', static_cast<int64_t>(text.size()));
  } else {
    if (proto < 3) return append_bulk(out, text);
    out += value.type;
  }
  out += text;
  out += "\r\n";
}

void append_scalar(std::string& out, const Value& value, int proto) {
  switch (value.type) {
    case '+':
      return append_simple(out, value.string);
    case '-':
      return append_error(out, value.string);
    case ':':
      return append_integer(out, value.integer);
    case '#':
      return append_bool(out, value.integer != 0, proto);
    case ',':
      if (value.string.empty()) return append_double(out, value.number, proto);
      return append_text(out, value, proto);
    case '(':
    case '=':
      return append_text(out, value, proto);
    case '!':
      if (proto < 3) return append_error(out, value.string);
      append_header(out, '!', static_cast<int64_t>(value.string.size()));
      out += value.string;
      out += "\r\n";
      return;
    default:
      return append_bulk(out, value.string);
  }
}

}  // namespace

void append_value(std::string& out, const Value& value, int proto) {
  if (proto >= 3 && !value.attributes.empty()) {
    append_attribute_header(out, value.attributes.size() / 2);
    for (const Value& attribute : value.attributes) append_value(out, attribute, proto);
  }
  if (value.null) {
    append_null_value(out, value, proto);
  } else if (value.is_aggregate()) {
    append_aggregate(out, value, proto);
  } else {
    append_scalar(out, value, proto);
  }
}

}  // namespace ballast::proto
