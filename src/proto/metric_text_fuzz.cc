// SPDX-License-Identifier: Apache-2.0
// A selector on the first line and an exposition after it: no pair of them breaks the reader, and
// what a selector finds alone in a line of its own is found again.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "proto/metric_text.h"

namespace proto = ballast::proto;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(text.find('\n'), text.size());
  const auto selector = proto::parse_metric_selector(text.substr(0, line));
  if (!selector) return 0;
  const std::string_view page = text.substr(std::min(line + 1, size));
  const auto found = proto::find_metric(page, *selector);
  if (found) {
    const auto again = proto::find_metric("other 1\n" + std::string(page), {selector->name, {}});
    BALLAST_CHECK(!again || *again == *found || std::isnan(*found) || selector->name == "other");
  }
  return 0;
}
