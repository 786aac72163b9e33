// SPDX-License-Identifier: Apache-2.0
// Whatever an agent sends: what is taken has figures in their ranges.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "proto/agent_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto check = ballast::proto::parse_agent_check({reinterpret_cast<const char*>(data), size});
  if (check && check->weight) BALLAST_CHECK(*check->weight >= 0 && *check->weight <= 256);
  return 0;
}
