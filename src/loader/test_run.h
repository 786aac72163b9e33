// SPDX-License-Identifier: Apache-2.0
// Gives a loaded XDP program packets without a network (BPF_PROG_TEST_RUN).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace ballast::loader {

struct TestRun {
  uint32_t action = 0;          // XDP_PASS and the like
  std::vector<uint8_t> packet;  // as the program left it
  uint32_t mean_ns = 0;         // of one run
};

// `packet` has 14 to about 3,500 bytes. With `repeat` above 1 each run gets the packet as the one
// before left it.
Result<TestRun> test_run(int program_fd, std::span<const uint8_t> packet, uint32_t repeat = 1);

}  // namespace ballast::loader
