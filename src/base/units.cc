// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace ballast {
namespace {

struct Suffix {
  std::string_view text;
  uint64_t factor;
};

constexpr Suffix kByteSuffixes[] = {
    {"GiB", 1ULL << 30},
    {"MiB", 1ULL << 20},
    {"KiB", 1ULL << 10},
    {"GB", 1'000'000'000},
    {"MB", 1'000'000},
    {"KB", 1'000},
    {"kB", 1'000},
    {"B", 1},
    {"", 1},
};
constexpr Suffix kTimeSuffixes[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}};

// A whole number and one of the suffixes; false when it is not that or larger than `most`.
bool parse_scaled(std::string_view text, std::span<const Suffix> suffixes, uint64_t most,
                  uint64_t& value) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const auto found = std::find_if(suffixes.begin(), suffixes.end(),
                                  [&](const Suffix& suffix) { return suffix.text == unit; });
  if (found == suffixes.end() || number > most / found->factor) return false;
  value = number * found->factor;
  return true;
}

std::string format_scaled(uint64_t value, std::span<const Suffix> suffixes) {
  for (const Suffix& suffix : suffixes) {
    if (value != 0 && value % suffix.factor == 0) {
      return fmt::format("{}{}", value / suffix.factor, suffix.text);
    }
  }
  return "0";
}

size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

Result<size_t> parse_bytes(std::string_view text) {
  uint64_t value = 0;
  if (parse_scaled(text, kByteSuffixes, std::numeric_limits<int64_t>::max(), value)) return value;
  return fail(
      ErrorCode::kInvalid,
      fmt::format("\"{}\" is not a size; write bytes or a unit, e.g. 65536, 64MiB, 1GB", text));
}

std::string format_bytes(size_t bytes) {
  constexpr size_t kShown = 3;  // powers of 1024 read back exactly; below them plain bytes
  const std::string binary = format_scaled(bytes, std::span(kByteSuffixes).first(kShown));
  return binary == "0" ? fmt::format("{}", bytes) : binary;
}

Result<uint32_t> parse_duration_ms(std::string_view text) {
  uint64_t value = 0;
  if (parse_scaled(text, kTimeSuffixes, std::numeric_limits<uint32_t>::max(), value)) {
    return static_cast<uint32_t>(value);
  }
  return fail(ErrorCode::kInvalid,
              fmt::format("\"{}\" is not a duration; write a whole number with its unit, e.g. "
                          "300ms, 2s, 1m",
                          text));
}

std::string format_duration_ms(uint32_t ms) {
  return ms != 0 && ms % 1000 == 0 ? fmt::format("{}s", ms / 1000) : fmt::format("{}ms", ms);
}

Result<uint32_t> parse_count(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return fail(ErrorCode::kInvalid,
              fmt::format("\"{}\" is not a whole number from 0 to 4294967295", text));
}

Result<double> parse_rate(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) &&
      value >= 0) {
    return value;
  }
  return fail(ErrorCode::kInvalid,
              fmt::format("\"{}\" is not a rate; write requests a second, 0 for no limit", text));
}

std::string format_rate(double rate) { return fmt::format("{}", rate); }

Result<double> parse_share(std::string_view text) {
  const bool percent = text.ends_with('%');
  std::string_view number = text.substr(0, text.size() - (percent ? 1 : 0));
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (percent) value /= 100;
  if (error != std::errc() || end != number.data() + number.size() || !(value >= 0) || value > 1)
    return fail(ErrorCode::kInvalid, fmt::format("\"{}\" is not a share: write 0.02 or 2%", text));
  return value;
}

Result<bool> parse_switch(std::string_view text) {
  for (const std::string_view word : {"true", "yes", "on", "1"}) {
    if (text == word) return true;
  }
  for (const std::string_view word : {"false", "no", "off", "0"}) {
    if (text == word) return false;
  }
  return fail(ErrorCode::kInvalid, fmt::format("\"{}\" is neither true nor false", text));
}

std::string nearest(std::string_view word, std::span<const std::string> known) {
  const std::string* best = nullptr;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t steps = distance(word, candidate);
    if (steps < least && steps < candidate.size()) {
      least = steps;
      best = &candidate;
    }
  }
  return best == nullptr ? "" : *best;
}

}  // namespace ballast
