// SPDX-License-Identifier: Apache-2.0
// Words of commands, which clients write in any case of letters.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace ballast::cache {

inline char lower(char byte) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
}

// `word` is in lower case.
inline bool equals_word(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return lower(a) == b; });
}

inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& byte : out) byte = lower(byte);
  return out;
}

// Without spaces and what a terminal would not show: names of clients and libraries.
inline bool is_printable_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '!' && c <= '~'; });
}

}  // namespace ballast::cache
