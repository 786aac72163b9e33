// SPDX-License-Identifier: Apache-2.0
// The one way a length or an integer is read: decimal, no leading zeros, no '+', as redis reads it.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace ballast::proto {

// False if `text` is anything but the canonical decimal form of an int64_t.
inline bool parse_integer(std::string_view text, int64_t& number) {
  const bool negative = !text.empty() && text[0] == '-';
  const size_t first = negative ? 1 : 0;
  if (text.size() <= first) return false;
  if (text[first] == '0') {
    number = 0;
    return text.size() == 1;
  }
  if (text[first] < '0' || text[first] > '9') return false;
  if (text.size() - first > 18) {  // may overflow
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    return parsed.ec == std::errc() && parsed.ptr == end;
  }
  int64_t magnitude = 0;
  for (size_t i = first; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    magnitude = magnitude * 10 + (text[i] - '0');
  }
  number = negative ? -magnitude : magnitude;
  return true;
}

}  // namespace ballast::proto
