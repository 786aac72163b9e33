// SPDX-License-Identifier: Apache-2.0
// Which of Redis Cluster's slots a key belongs to.
// Source: Redis cluster specification, "Key distribution model" and "Hash tags".
#pragma once

#include <cstdint>
#include <string_view>

namespace ballast::proto {

inline constexpr uint16_t kSlots = 16384;

// CRC-16/XMODEM: polynomial 0x1021, initial value 0, not reflected.
uint16_t crc16(std::string_view bytes);

// What of the key decides its slot: the text between the first '{' and the next '}' unless that is
// empty, else the whole key.
std::string_view hashed_part(std::string_view key);

// In [0, kSlots).
inline uint16_t key_slot(std::string_view key) { return crc16(hashed_part(key)) % kSlots; }

}  // namespace ballast::proto
