// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <sys/random.h>

#include "base/check.h"

namespace ballast {

uint64_t system_seed() {
  uint64_t seed = 0;
  BALLAST_CHECK(getrandom(&seed, sizeof seed, 0) == sizeof seed);
  return seed;
}

}  // namespace ballast
