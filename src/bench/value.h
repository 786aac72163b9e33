// SPDX-License-Identifier: Apache-2.0
// What a value written by the load generator says about itself: its key, the run, the connection
// that wrote it, its number in the key's series and its length, as text at its start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ballast::bench {

struct ValueTag {
  uint64_t key_hash = 0;
  uint32_t run = 0;     // random for each run
  uint32_t writer = 0;  // index of the connection
  uint32_t number = 0;  // 1, 2, ... for each key
  uint32_t size = 0;    // of the whole value, bytes

  bool operator==(const ValueTag&) const = default;
};

// Fields in hexadecimal, a space between them.
inline constexpr size_t kTagSize = 16 + 4 * (1 + 8);

// Appends the value, size bytes long; a value shorter than a tag holds the tag's beginning.
void append_value(std::string& out, const ValueTag& tag);
// Nothing if the bytes are not a whole value written by append_value().
std::optional<ValueTag> read_value(std::string_view value);

}  // namespace ballast::bench
