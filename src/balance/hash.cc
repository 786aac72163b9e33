// SPDX-License-Identifier: Apache-2.0
#include "balance/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ballast::balance {

uint64_t key_hash(std::string_view key) {
  constexpr uint64_t kSeed = 0x62616c6c61737431ULL;
  return XXH3_64bits_withSeed(key.data(), key.size(), kSeed);
}

}  // namespace ballast::balance
