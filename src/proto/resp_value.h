// SPDX-License-Identifier: Apache-2.0
// A reply as a tree, for the cold paths; the data path forwards bytes and uses ReplyScanner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ballast::proto {

struct Value {
  char type = '_';   // the first byte of its RESP form: + - : $ * _ # , ( ! = % ~ >
  bool null = true;  // `_`, `$-1` or `*-1`
  // + - $ ! ( : the text. = : the text with its prefix, e.g. "txt:". , : the number as written.
  std::string string;
  int64_t integer = 0;            // : and #
  double number = 0;              // ,
  std::vector<Value> children;    // * ~ > in order; % as key, value, key, value, …
  std::vector<Value> attributes;  // as a map's children

  bool is_error() const { return type == '-' || type == '!'; }
  bool is_aggregate() const { return type == '*' || type == '%' || type == '~' || type == '>'; }
  bool operator==(const Value&) const = default;
};

// All of `reply` is one reply, neither less nor more; nesting up to kMaxReplyDepth. Streamed
// strings and aggregates come out as plain ones.
Result<Value> parse_value(std::string_view reply);

// Writes the value for a RESP2 or RESP3 client (2 drops attributes); the inverse of parse_value
// for 3.
void append_value(std::string& out, const Value& value, int proto);

}  // namespace ballast::proto
