// SPDX-License-Identifier: Apache-2.0
// What a flag's `set` does with its text: parse it, hold it against its bounds, store it.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "base/clock.h"
#include "base/units.h"

namespace ballast::app {

// A whole number from 1 to `most`.
template <typename Count>
auto count_into(Count& target, uint32_t most) {
  return [&target, most](const std::string& text) -> Result<> {
    const auto count = parse_count(text);
    if (!count) return Unexpected(count.error());
    if (*count < 1 || *count > most)
      return fail(ErrorCode::kInvalid, fmt::format("\"{}\": from 1 to {}", text, most));
    target = static_cast<Count>(*count);
    return {};
  };
}

// From 0 to `most`.
inline auto number_into(double& target, double most) {
  return [&target, most](const std::string& text) -> Result<> {
    const auto number = parse_rate(text);
    if (!number) return Unexpected(number.error());
    if (*number > most)
      return fail(ErrorCode::kInvalid, fmt::format("\"{}\": at most {:g}", text, most));
    target = *number;
    return {};
  };
}

// Above 0, at most `most`.
inline auto positive_into(double& target, double most) {
  return [&target, most](const std::string& text) -> Result<> {
    const auto number = parse_rate(text);
    if (!number) return Unexpected(number.error());
    if (*number <= 0 || *number > most)
      return fail(ErrorCode::kInvalid, fmt::format("\"{}\": above 0, at most {:g}", text, most));
    target = *number;
    return {};
  };
}

inline auto share_into(double& target) {
  return [&target](const std::string& text) -> Result<> {
    const auto share = parse_share(text);
    if (!share) return Unexpected(share.error());
    target = *share;
    return {};
  };
}

inline auto duration_into(Nanos& target) {
  return [&target](const std::string& text) -> Result<> {
    const auto ms = parse_duration_ms(text);
    if (!ms) return Unexpected(ms.error());
    target = Nanos{*ms} * kMillisecond;
    return {};
  };
}

inline auto switch_into(bool& target) {
  return [&target](const std::string& text) -> Result<> {
    const auto on = parse_switch(text);
    if (!on) return Unexpected(on.error());
    target = *on;
    return {};
  };
}

// Any whole number of 64 bits.
inline auto seed_into(uint64_t& target) {
  return [&target](const std::string& text) -> Result<> {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, target);
    if (error != std::errc() || stop != end)
      return fail(ErrorCode::kInvalid, "not a whole number: \"" + text + "\"");
    return {};
  };
}

// `what` says what an empty text lacks.
inline auto text_into(std::string& target, const char* what) {
  return [&target, what](const std::string& text) -> Result<> {
    if (text.empty()) return fail(ErrorCode::kInvalid, std::string("needs ") + what);
    target = text;
    return {};
  };
}

}  // namespace ballast::app
