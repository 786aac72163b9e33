// SPDX-License-Identifier: Apache-2.0
// Writes RESP into a string that the caller owns. `proto` is 2 or 3: what has no RESP2 form is
// written the way redis writes it for a RESP2 client.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ballast::proto {

// Type byte, decimal number, CRLF.
inline void append_header(std::string& out, char type, int64_t number) {
  std::array<char, 24> text;
  text[0] = type;
  char* end = std::to_chars(text.data() + 1, text.data() + text.size() - 2, number).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.append(text.data(), static_cast<size_t>(end - text.data()));
}

// The caller's text holds neither CR nor LF.
inline void append_simple(std::string& out, std::string_view text) {
  out += '+';
  out += text;
  out += "\r\n";
}

// CR and LF become spaces: the text may quote what a client sent.
inline void append_error(std::string& out, std::string_view text) {
  out += '-';
  for (char byte : text) out += byte == '\r' || byte == '\n' ? ' ' : byte;
  out += "\r\n";
}

inline void append_integer(std::string& out, int64_t number) { append_header(out, ':', number); }

inline void append_bulk(std::string& out, std::string_view bytes) {
  append_header(out, '$', static_cast<int64_t>(bytes.size()));
  out += bytes;
  out += "\r\n";
}

// Text for people, which RESP3 tells from other bulk strings.
inline void append_verbatim(std::string& out, std::string_view text, int proto) {
  if (proto < 3) return append_bulk(out, text);
  append_header(out, '=', static_cast<int64_t>(text.size() + 4));
  out += "txt:";
  out += text;
  out += "\r\n";
}

inline void append_null(std::string& out, int proto) { out += proto >= 3 ? "_\r\n" : "$-1\r\n"; }

inline void append_null_array(std::string& out, int proto) {
  out += proto >= 3 ? "_\r\n" : "*-1\r\n";
}

inline void append_array_header(std::string& out, size_t elements) {
  append_header(out, '*', static_cast<int64_t>(elements));
}

inline void append_map_header(std::string& out, size_t pairs, int proto) {
  append_header(out, proto >= 3 ? '%' : '*', static_cast<int64_t>(proto >= 3 ? pairs : 2 * pairs));
}

inline void append_set_header(std::string& out, size_t elements, int proto) {
  append_header(out, proto >= 3 ? '~' : '*', static_cast<int64_t>(elements));
}

inline void append_push_header(std::string& out, size_t elements, int proto) {
  append_header(out, proto >= 3 ? '>' : '*', static_cast<int64_t>(elements));
}

// RESP3 only; the reply it describes follows the pairs.
inline void append_attribute_header(std::string& out, size_t pairs) {
  append_header(out, '|', static_cast<int64_t>(pairs));
}

// 17 significant digits as redis 7.0 prints them; RESP2 gets a bulk string.
inline void append_double(std::string& out, double number, int proto) {
  std::array<char, 40> text;
  std::string_view digits = "nan";
  if (std::isinf(number)) {
    digits = number > 0 ? "inf" : "-inf";
  } else if (!std::isnan(number)) {
    auto done = std::to_chars(text.data(), text.data() + text.size(), number,
                              std::chars_format::general, 17);
    digits = {text.data(), static_cast<size_t>(done.ptr - text.data())};
  }
  if (proto < 3) return append_bulk(out, digits);
  out += ',';
  out += digits;
  out += "\r\n";
}

inline void append_bool(std::string& out, bool value, int proto) {
  if (proto >= 3) {
    out += value ? "#t\r\n" : "#f\r\n";
  } else {
    out += value ? ":1\r\n" : ":0\r\n";
  }
}

// A request: an array of bulk strings.
inline void append_command(std::string& out, std::span<const std::string_view> args) {
  append_array_header(out, args.size());
  for (std::string_view arg : args) append_bulk(out, arg);
}

}  // namespace ballast::proto
