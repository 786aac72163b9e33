// SPDX-License-Identifier: Apache-2.0
// Any bytes: the parser stays in bounds, finds the same however the input is cut, and what it
// found parses back from its written form.
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "proto/resp_command.h"
#include "proto/resp_write.h"

namespace ballast::proto {
namespace {

struct Outcome {
  std::vector<std::vector<std::string>> commands;
  std::string error;
  bool operator==(const Outcome&) const = default;
};

Outcome parse_pieces(std::string_view input, const CommandLimits& limits, Random* cuts) {
  Outcome outcome;
  CommandParser parser(&limits);
  size_t begin = 0;
  size_t end = cuts == nullptr ? input.size() : 0;
  while (true) {
    const std::vector<char> copy(input.begin() + static_cast<long>(begin),
                                 input.begin() + static_cast<long>(end));
    const std::string_view buffer(copy.data(), copy.size());
    switch (parser.parse(buffer)) {
      case CommandParser::Status::kError:
        outcome.error = parser.error();
        return outcome;
      case CommandParser::Status::kNeedMore:
        if (end == input.size()) return outcome;
        end += 1 + cuts->below(input.size() - end);
        break;
      case CommandParser::Status::kCommand:
        BALLAST_CHECK(parser.consumed() > 0 && parser.consumed() <= buffer.size());
        outcome.commands.emplace_back(parser.args().begin(), parser.args().end());
        begin += parser.consumed();
        break;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  CommandLimits limits;
  limits.max_inline = 256;
  limits.max_bulk = 4096;
  const Outcome whole = parse_pieces(input, limits, nullptr);
  Random cuts(size);
  BALLAST_CHECK(parse_pieces(input, limits, &cuts) == whole);
  std::string written;
  for (const auto& command : whole.commands) {
    const std::vector<std::string_view> args(command.begin(), command.end());
    append_command(written, args);
  }
  Outcome again = parse_pieces(written, limits, nullptr);
  BALLAST_CHECK(again.error.empty() && again.commands == whole.commands);
  return 0;
}

}  // namespace ballast::proto
