// SPDX-License-Identifier: Apache-2.0
// A path on the first line and a document after it: a number that is found is a finite one.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "proto/json_number.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(text.find('\n'), size);
  const auto found =
      ballast::proto::find_json_number(text.substr(std::min(line + 1, size)), text.substr(0, line));
  if (found) BALLAST_CHECK(std::isfinite(*found));
  return 0;
}
