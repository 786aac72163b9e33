// SPDX-License-Identifier: Apache-2.0
// Any bytes: the scanner stays in bounds, says the same however the input is cut, and agrees with
// the tree parser; the downgraded form is RESP again.
#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "proto/resp_convert.h"
#include "proto/resp_reply.h"
#include "proto/resp_value.h"

namespace ballast::proto {
namespace {

// Where the first reply ends; 0 if it does not, -1 for an error.
long scan_pieces(std::string_view input, Random* cuts) {
  ReplyScanner scanner;
  size_t at = 0;
  while (at < input.size()) {
    const size_t size = cuts == nullptr ? input.size() : 1 + cuts->below(input.size() - at);
    const std::string_view view = input.substr(at, size);
    const std::vector<char> piece(view.begin(), view.end());
    const Scan scan = scanner.scan({piece.data(), piece.size()});
    at += scan.consumed;
    if (scan.error) return -1;
    if (scan.complete) return static_cast<long>(at);
    BALLAST_CHECK(scan.consumed == piece.size());
  }
  return 0;
}

bool may_be_deep(std::string_view reply) {
  const auto opens = [](char byte) {
    return std::string_view("*%~>|").find(byte) != std::string_view::npos;
  };
  return static_cast<size_t>(std::count_if(reply.begin(), reply.end(), opens)) > kMaxReplyDepth;
}

void check_reply(std::string_view reply) {
  const Result<Value> value = parse_value(reply);
  std::string resp2;
  const bool converted = downgrade(reply, resp2);
  if (!value) {
    // Only the tree looks into doubles, and it goes less deep.
    BALLAST_CHECK(reply.find(',') != std::string_view::npos || may_be_deep(reply));
    return;
  }
  BALLAST_CHECK(converted && scan_pieces(resp2, nullptr) == static_cast<long>(resp2.size()));
  std::string resp3;
  append_value(resp3, *value, 3);
  BALLAST_CHECK(scan_pieces(resp3, nullptr) == static_cast<long>(resp3.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const long end = scan_pieces(input, nullptr);
  Random cuts(size);
  BALLAST_CHECK(scan_pieces(input, &cuts) == end);
  if (end > 0) {
    check_reply(input.substr(0, static_cast<size_t>(end)));
  } else {
    BALLAST_CHECK(!parse_value(input));
  }
  return 0;
}

}  // namespace ballast::proto
