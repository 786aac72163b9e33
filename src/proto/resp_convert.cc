// SPDX-License-Identifier: Apache-2.0
// The scanner vouches for the structure, so the conversion is one pass over headers without a
// stack; only streamed types, whose counts come last, go through a tree.
#include "proto/resp_convert.h"

#include <cstdint>

#include "proto/resp_number.h"
#include "proto/resp_reply.h"
#include "proto/resp_value.h"
#include "proto/resp_write.h"

namespace ballast::proto {

namespace {

bool convert_tree(std::string_view resp3, std::string& out) {
  const Result<Value> value = parse_value(resp3);
  if (value) append_value(out, *value, 2);
  return value.has_value();
}

// Walks a well-formed reply without streamed types.
class Downgrader {
 public:
  Downgrader(std::string_view input, std::string& out) : input_(input), out_(out) {}

  // One header and its string, or an attribute. False at a streamed type.
  bool convert_element() {
    const char type = input_[at_];
    const size_t line_end = input_.find("\r\n", at_ + 1);
    const std::string_view text = input_.substr(at_ + 1, line_end - at_ - 1);
    const size_t start = at_;
    at_ = line_end + 2;
    int64_t length = 0;
    switch (type) {
      case '_':
        append_null(out_, 2);
        return true;
      case '#':
        append_bool(out_, text == "t", 2);
        return true;
      case ',':
      case '(':
        append_bulk(out_, text);
        return true;
      case '+':
      case '-':
      case ':':
        out_ += input_.substr(start, at_ - start);
        return true;
      default:
        break;
    }
    if (!parse_integer(text, length)) return false;
    if (length < 0) {
      out_ += input_.substr(start, at_ - start);
      return true;
    }
    if (type == '|') return skip(2 * length);
    if (type == '$' || type == '!' || type == '=') {
      convert_string(type, static_cast<size_t>(length));
    } else {
      append_header(out_, '*', type == '%' ? 2 * length : length);
    }
    return true;
  }

  bool at_end() const { return at_ == input_.size(); }

 private:
  void convert_string(char type, size_t size) {
    const std::string_view bytes = input_.substr(at_, size);
    at_ += size + 2;
    if (type == '!') {
      append_error(out_, bytes);
    } else {
      append_bulk(out_, type == '=' ? bytes.substr(4) : bytes);
    }
  }

  // Passes over `count` elements and all that is in them.
  bool skip(int64_t count) {
    while (count > 0) {
      const char type = input_[at_];
      const size_t line_end = input_.find("\r\n", at_ + 1);
      const std::string_view text = input_.substr(at_ + 1, line_end - at_ - 1);
      at_ = line_end + 2;
      --count;
      int64_t length = 0;
      switch (type) {
        case '$':
        case '!':
        case '=':
          if (!parse_integer(text, length)) return false;
          if (length >= 0) at_ += static_cast<size_t>(length) + 2;
          break;
        case '*':
        case '~':
        case '%':
        case '|':
          if (!parse_integer(text, length)) return false;
          if (length > 0) count += type == '%' || type == '|' ? 2 * length : length;
          if (type == '|') ++count;
          break;
        default:
          break;
      }
    }
    return true;
  }

  std::string_view input_;
  std::string& out_;
  size_t at_ = 0;
};

}  // namespace

bool downgrade(std::string_view resp3, std::string& out) {
  ReplyScanner scanner;
  const Scan scan = scanner.scan(resp3);
  if (!scan.complete || scan.consumed != resp3.size()) return false;
  if (resp3[0] == '$' && resp3[1] != '?') {
    out += resp3;
    return true;
  }
  const size_t kept = out.size();
  Downgrader downgrader(resp3, out);
  while (!downgrader.at_end()) {
    if (!downgrader.convert_element()) {
      out.resize(kept);
      return convert_tree(resp3, out);
    }
  }
  return true;
}

}  // namespace ballast::proto
