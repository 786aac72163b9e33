// SPDX-License-Identifier: Apache-2.0
#include "bench/value.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace ballast::bench {
namespace {

constexpr char kFill = '.';

char* put_hex(char* to, uint64_t value, int digits) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (int i = digits - 1; i >= 0; --i) {
    to[i] = kDigits[value & 15];
    value >>= 4;
  }
  return to + digits;
}

template <typename T>
bool get_hex(std::string_view& text, size_t digits, T& value) {
  const char* end = text.data() + digits;
  const auto [stop, error] = std::from_chars(text.data(), end, value, 16);
  if (error != std::errc() || stop != end) return false;
  text.remove_prefix(digits);
  if (text.empty()) return true;
  if (text.front() != ' ' && text.front() != kFill) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

void append_value(std::string& out, const ValueTag& tag) {
  std::array<char, kTagSize> text;
  char* p = put_hex(text.data(), tag.key_hash, 16);
  for (const uint32_t field : {tag.run, tag.writer, tag.number, tag.size}) {
    *p++ = ' ';
    p = put_hex(p, field, 8);
  }
  out.append(text.data(), std::min<size_t>(kTagSize, tag.size));
  if (tag.size > kTagSize) out.append(tag.size - kTagSize, kFill);
}

std::optional<ValueTag> read_value(std::string_view value) {
  if (value.size() < kTagSize) return std::nullopt;
  ValueTag tag;
  std::string_view rest = value;
  if (!get_hex(rest, 16, tag.key_hash) || !get_hex(rest, 8, tag.run) ||
      !get_hex(rest, 8, tag.writer) || !get_hex(rest, 8, tag.number) ||
      !get_hex(rest, 8, tag.size)) {
    return std::nullopt;
  }
  if (tag.size != value.size() || (!rest.empty() && rest.back() != kFill)) return std::nullopt;
  return tag;
}

}  // namespace ballast::bench
