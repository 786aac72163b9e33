// SPDX-License-Identifier: Apache-2.0
// Eight bytes a step: the table of distance d gives what a byte contributes when d bytes follow.
#include "proto/slot.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace ballast::proto {

namespace {

using Tables = std::array<std::array<uint16_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1;
    }
    tables[0][byte] = static_cast<uint16_t>(crc);
  }
  for (size_t distance = 1; distance < tables.size(); ++distance) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const unsigned before = tables[distance - 1][byte];
      tables[distance][byte] =
          static_cast<uint16_t>((before << 8) ^ tables[0][(before >> 8) & 0xff]);
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint16_t crc16(std::string_view bytes) {
  const unsigned char* p = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  unsigned crc = 0;
  for (; left >= 8; left -= 8, p += 8) {
    crc = static_cast<unsigned>(kTables[7][p[0] ^ (crc >> 8)] ^ kTables[6][p[1] ^ (crc & 0xff)] ^
                                kTables[5][p[2]] ^ kTables[4][p[3]] ^ kTables[3][p[4]] ^
                                kTables[2][p[5]] ^ kTables[1][p[6]] ^ kTables[0][p[7]]);
  }
  for (; left > 0; --left, ++p) crc = ((crc << 8) & 0xffff) ^ kTables[0][(crc >> 8) ^ *p];
  return static_cast<uint16_t>(crc);
}

std::string_view hashed_part(std::string_view key) {
  const size_t open = key.find('{');
  if (open == std::string_view::npos) [[likely]]
    return key;
  const size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

}  // namespace ballast::proto
