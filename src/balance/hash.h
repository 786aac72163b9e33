// SPDX-License-Identifier: Apache-2.0
// The one hash of keys (XXH3, 64 bits) and a mixer that derives independent values from it.
#pragma once

#include <cstdint>
#include <string_view>

namespace ballast::balance {

// XXH3_64bits with a fixed seed: equal on every machine and in every process of a tier. Unlike
// CRC16, on which the slots rest, it shares no structure with the slot of a key.
uint64_t key_hash(std::string_view key);

// A bijection of `value` for each seed (the finalizer of SplitMix64 around two xors): different
// seeds give independent hashes of one key hash.
constexpr uint64_t mix(uint64_t value, uint64_t seed) {
  uint64_t z = value ^ (seed * 0x9e3779b97f4a7c15ULL + 0xd1b54a32d192ed03ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  z ^= z >> 31;
  z += seed;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93ULL;
  return z ^ (z >> 32);
}

// Maps a uniform 64-bit value to [0, n) by its high bits; n > 0.
constexpr uint64_t reduce(uint64_t value, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(value) * n) >> 64);
}

}  // namespace ballast::balance
