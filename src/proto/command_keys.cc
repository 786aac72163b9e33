// SPDX-License-Identifier: Apache-2.0
// Finds a command's keys by its key specifications, as redis 7 does, or by the older range.
#include <algorithm>
#include <optional>

#include "proto/command_table.h"
#include "proto/resp_number.h"

namespace ballast::proto {

namespace {

struct Range {
  int64_t first;
  int64_t last;  // below first: no keys
  int64_t step;
};

constexpr Range kNoKeys{1, 0, 1};

bool equal_word(std::string_view lower_case, std::string_view text) {
  return lower_case.size() == text.size() &&
         std::equal(text.begin(), text.end(), lower_case.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b;
         });
}

// Index behind the keyword, 0 if it is not there.
int64_t find_keyword(const KeySpec& spec, std::span<const std::string_view> args) {
  const int64_t count = static_cast<int64_t>(args.size());
  const int64_t step = spec.index > 0 ? 1 : -1;
  for (int64_t i = spec.index > 0 ? spec.index : count + spec.index; i > 0 && i < count;
       i += step) {
    if (equal_word(spec.keyword, args[static_cast<size_t>(i)])) return i + 1;
  }
  return 0;
}

// Nothing if the specification cannot be followed.
std::optional<Range> find_range(const KeySpec& spec, std::span<const std::string_view> args) {
  const int64_t count = static_cast<int64_t>(args.size());
  int64_t begin = spec.index;
  if (spec.begin == KeySpec::Begin::kUnknown || spec.key_step < 1) return std::nullopt;
  if (spec.begin == KeySpec::Begin::kKeyword) {
    begin = find_keyword(spec, args);
    if (begin == 0) return kNoKeys;
  }
  if (begin < 1) return std::nullopt;
  if (spec.find == KeySpec::Find::kRange) {
    if (spec.last_key >= 0) return Range{begin, begin + spec.last_key, spec.key_step};
    if (spec.limit < 2) return Range{begin, count + spec.last_key, spec.key_step};
    return Range{begin, begin + (count - begin) / spec.limit + spec.last_key, spec.key_step};
  }
  if (spec.find != KeySpec::Find::kKeynum) return std::nullopt;
  const int64_t count_at = begin + spec.count_at;
  int64_t keys = 0;
  if (count_at < 1 || count_at >= count ||
      !parse_integer(args[static_cast<size_t>(count_at)], keys)) {
    return std::nullopt;
  }
  const int64_t first = begin + spec.first_key;
  keys = std::min(keys, count);
  return keys > 0 && first > 0 ? Range{first, first + (keys - 1) * spec.key_step, spec.key_step}
                               : kNoKeys;
}

void add_positions(const Range& range, bool written, size_t args,
                   std::vector<KeyPosition>& positions) {
  const int64_t last = std::min(range.last, static_cast<int64_t>(args) - 1);
  for (int64_t i = range.first; i <= last; i += range.step) {
    positions.push_back({static_cast<uint32_t>(i), written});
  }
}

}  // namespace

bool CommandInfo::may_write_keys() const {
  return has(kWrite) ||
         std::any_of(specs.begin(), specs.end(), [](const KeySpec& spec) { return spec.written; });
}

bool CommandInfo::keys(std::span<const std::string_view> args,
                       std::vector<KeyPosition>& positions) const {
  positions.clear();
  if (!has_specs) {
    if (has(kMovablekeys)) return false;
    if (first_key < 1 || key_step < 1) return true;
    const int64_t last = last_key >= 0 ? last_key : static_cast<int64_t>(args.size()) + last_key;
    add_positions({first_key, last, key_step}, !has(kReadonly), args.size(), positions);
    return true;
  }
  // A module with a function of its own to find keys: its specification is a made-up one.
  if (has(kModule) && has(kMovablekeys)) return false;
  for (const KeySpec& spec : specs) {
    if (spec.not_key) continue;
    const std::optional<Range> range = find_range(spec, args);
    if (!range || spec.incomplete) return false;
    add_positions(*range, spec.written, args.size(), positions);
  }
  return true;
}

}  // namespace ballast::proto
