// SPDX-License-Identifier: Apache-2.0
// The escapes of Redis's quoted strings: in inline commands and in what MONITOR prints.
#pragma once

namespace ballast::proto {

// -1 for what is none.
inline int hex_digit(char byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return -1;
}

// What a backslash before this letter stands for.
inline char unescape(char letter) {
  switch (letter) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return letter;
  }
}

}  // namespace ballast::proto
