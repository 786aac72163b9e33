// SPDX-License-Identifier: Apache-2.0
// The one way a length or an integer is read: decimal, no leading zeros, no '+', as redis reads it.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace ballast::proto {

// False if `text` is anything but the canonical decimal form of an int64_t.
inline bool parse_integer(std::string_view text, int64_t& number) {
  if (text == "0") {
    number = 0;
    return true;
  }
  const size_t first = !text.empty() && text[0] == '-' ? 1 : 0;
  if (text.size() <= first || text[first] < '1' || text[first] > '9') return false;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace ballast::proto
