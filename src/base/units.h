// SPDX-License-Identifier: Apache-2.0
// The text forms of values in options, environment and files: sizes, durations, counts, rates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ballast {

// "65536", "64KiB", "64MiB", "1GiB" (powers of 1024) or "64KB", "64MB", "1GB" (powers of 1000).
Result<size_t> parse_bytes(std::string_view text);
std::string format_bytes(size_t bytes);  // the shortest exact form

// "300ms", "1s", "2m"; the unit is required.
Result<uint32_t> parse_duration_ms(std::string_view text);
std::string format_duration_ms(uint32_t ms);

Result<uint32_t> parse_count(std::string_view text);
Result<double> parse_rate(std::string_view text);  // not negative, finite
std::string format_rate(double rate);
Result<double> parse_share(std::string_view text);  // from 0 to 1: "0.02" or "2%"

Result<bool> parse_switch(std::string_view text);  // true, yes, on, 1 and their opposites

// The nearest of `known` when it is near enough to be what was meant, else empty.
std::string nearest(std::string_view word, std::span<const std::string> known);

}  // namespace ballast
