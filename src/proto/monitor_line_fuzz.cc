// SPDX-License-Identifier: Apache-2.0
// Arbitrary lines: what is parsed whole has arguments, and cutting it never adds or changes one.
#include <string>

#include "base/check.h"
#include "proto/monitor_line.h"

namespace ballast::proto {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string line(reinterpret_cast<const char*>(data), size);
  MonitorLine whole;
  if (!whole.parse(line)) {
    whole.parse(line, true);
    return 0;
  }
  BALLAST_CHECK(!whole.args().empty());
  MonitorLine part;
  for (size_t end = 0; end < size && end < 256; ++end) {
    if (!part.parse(std::string_view(line).substr(0, end), true)) continue;
    BALLAST_CHECK(part.args().size() <= whole.args().size());
    for (size_t i = 0; i < part.args().size(); ++i)
      BALLAST_CHECK(part.args()[i] == whole.args()[i]);
  }
  return 0;
}

}  // namespace ballast::proto
