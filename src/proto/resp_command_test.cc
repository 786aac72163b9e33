// SPDX-License-Identifier: Apache-2.0
#include "proto/resp_command.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/random.h"
#include "proto/resp_write.h"

namespace ballast::proto {
namespace {

using Status = CommandParser::Status;

struct Parsed {
  std::vector<std::vector<std::string>> commands;
  std::string error;
  size_t left = 0;

  bool operator==(const Parsed&) const = default;
};

// Gives `input` in pieces that end at `cuts`; each piece moves the buffer to a new place.
Parsed parse_all(std::string_view input, const std::vector<size_t>& cuts,
                 const CommandLimits& limits = kDefaultCommandLimits) {
  Parsed result;
  CommandParser parser(&limits);
  std::string buffer;
  size_t given = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const size_t until = i < cuts.size() ? cuts[i] : input.size();
    std::string moved = buffer + std::string(input.substr(given, until - given));
    moved.shrink_to_fit();
    buffer.swap(moved);
    given = until;
    while (true) {
      const Status status = parser.parse(buffer);
      if (status == Status::kError) {
        result.error = parser.error();
        EXPECT_EQ(parser.parse(buffer), Status::kError);
        return result;
      }
      if (status == Status::kNeedMore) break;
      auto& command = result.commands.emplace_back();
      for (std::string_view arg : parser.args()) command.emplace_back(arg);
      EXPECT_GT(parser.consumed(), 0u);
      buffer.erase(0, parser.consumed());
    }
  }
  result.left = buffer.size();
  return result;
}

// The same outcome however the input is cut in two, and byte by byte.
Parsed parse_cut_everywhere(std::string_view input,
                            const CommandLimits& limits = kDefaultCommandLimits) {
  const Parsed whole = parse_all(input, {}, limits);
  std::vector<size_t> each;
  for (size_t cut = 0; cut <= input.size(); ++cut) {
    EXPECT_EQ(parse_all(input, {cut}, limits), whole) << "cut at " << cut;
    each.push_back(cut);
  }
  EXPECT_EQ(parse_all(input, each, limits), whole);
  return whole;
}

using Commands = std::vector<std::vector<std::string>>;

TEST(CommandParser, MessagesCutAtEveryByte) {
  const Parsed parsed = parse_cut_everywhere(
      "*2\r\n$3\r\nGET\r\n$5\r\nkey:1\r\n*0\r\n*-1\r\nPING\r\n\r\n*3\r\n$3\r\nSET\r\n$0\r\n\r\n"
      "$4\r\n\r\n\r\n\r\nECHO \"a b\\x41\\n\" 'it\\'s'\n*1\r\n$4\r\nPI");
  const Commands expected = {
      {"GET", "key:1"}, {}, {}, {"PING"}, {}, {"SET", "", "\r\n\r\n"}, {"ECHO", "a bA\n", "it's"}};
  EXPECT_EQ(parsed.commands, expected);
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.left, 10u);
}

TEST(CommandParser, ErrorsAreThoseOfRedis) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"*x\r\n", "invalid multibulk length"},
      {"*01\r\n", "invalid multibulk length"},
      {"*\r\n", "invalid multibulk length"},
      {"*+1\r\n", "invalid multibulk length"},
      {"*999999999\r\n", "invalid multibulk length"},
      {"*99999999999999999999\r\n", "invalid multibulk length"},
      {"*1\r\n$-1\r\n", "invalid bulk length"},
      {"*1\r\n$-5\r\n", "invalid bulk length"},
      {"*1\r\n$2147483645\r\n", "invalid bulk length"},
      {"*1\r\n$x\r\n", "invalid bulk length"},
      {"*1\r\n!3\r\nabc\r\n", "expected '$', got '!'"},
      {"*1\r\n\r\n", "expected '$', got '\r'"},
      {"*1\r\n$3\r\nabcde", "bulk string without CRLF at its end"},
      {"SET \"a\r\n", "unbalanced quotes in request"},
      {"SET \"a\"b\r\n", "unbalanced quotes in request"},
      {"SET 'a\r\n", "unbalanced quotes in request"},
      {"SET 'a'b\r\n", "unbalanced quotes in request"},
  };
  for (const auto& [input, error] : cases) {
    EXPECT_EQ(parse_cut_everywhere(input).error, "Protocol error: " + error) << input;
  }
}

TEST(CommandParser, LongLines) {
  CommandLimits limits;
  limits.max_inline = 20;
  const std::string digits(30, '1');
  EXPECT_EQ(parse_cut_everywhere("*" + digits, limits).error,
            "Protocol error: too big mbulk count string");
  EXPECT_EQ(parse_cut_everywhere("*1\r\n$" + digits, limits).error,
            "Protocol error: too big bulk count string");
  EXPECT_EQ(parse_cut_everywhere(digits, limits).error, "Protocol error: too big inline request");
  EXPECT_EQ(parse_cut_everywhere(digits + "\n", limits).error,
            "Protocol error: too big inline request");
  EXPECT_EQ(parse_cut_everywhere(std::string(20, 'a') + "\n", limits).commands.size(), 1u);
}

TEST(CommandParser, LimitsHoldAtTheirEdge) {
  CommandLimits limits;
  limits.max_args = 2;
  limits.max_bulk = 3;
  EXPECT_EQ(parse_cut_everywhere("*2\r\n$3\r\nabc\r\n$0\r\n\r\n", limits).error, "");
  EXPECT_EQ(parse_cut_everywhere("*3\r\n", limits).error,
            "Protocol error: invalid multibulk length");
  EXPECT_EQ(parse_cut_everywhere("*1\r\n$4\r\n", limits).error,
            "Protocol error: invalid bulk length");
  CommandLimits total;
  total.max_total = 15;
  EXPECT_EQ(parse_cut_everywhere("*1\r\n$5\r\nabcde\r\n", total).error, "");
  EXPECT_EQ(parse_cut_everywhere("*1\r\n$6\r\n", total).error, "Protocol error: too big request");
}

TEST(CommandParser, UnauthenticatedLimits) {
  CommandLimits limits;
  limits.unauthenticated = true;
  EXPECT_EQ(parse_cut_everywhere("*10\r\n", limits).error, "");
  EXPECT_EQ(parse_cut_everywhere("*11\r\n", limits).error,
            "Protocol error: unauthenticated multibulk length");
  EXPECT_EQ(parse_cut_everywhere("*1\r\n$16384\r\n", limits).error, "");
  EXPECT_EQ(parse_cut_everywhere("*1\r\n$16385\r\n", limits).error,
            "Protocol error: unauthenticated bulk length");
  CommandParser parser(&limits);
  EXPECT_EQ(parser.parse("*1\r\n$4\r\nPING\r\n"), Status::kCommand);
  parser.set_limits(&kDefaultCommandLimits);
  EXPECT_EQ(parser.parse("*11\r\n"), Status::kNeedMore);
}

TEST(CommandParser, QuotingRules) {
  const std::vector<std::pair<std::string, std::optional<std::vector<std::string>>>> cases = {
      {"a  b\tc", {{"a", "b", "c"}}},
      {"  a ", {{"a"}}},
      {"\"\" ''", {{"", ""}}},
      {"\"\\x41\\xzz\\q\\\"\"", {{"Axzzq\""}}},
      {"\"\\n\\r\\t\\b\\a\"", {{"\n\r\t\b\a"}}},
      {"'\\n\\''", {{"\\n'"}}},
      {"foo\"bar\" baz", {{"foobar", "baz"}}},
      {"\"\\x4\"", {{"x4"}}},
      {"\"abc\\", std::nullopt},
      {"\"a", std::nullopt},
      {"'a", std::nullopt},
      {"\"a\"b", std::nullopt},
      {"", std::vector<std::string>{}},
  };
  for (const auto& [line, expected] : cases) {
    std::string text;
    std::vector<std::string_view> args;
    const bool valid = split_inline(line, text, args);
    EXPECT_EQ(valid, expected.has_value()) << line;
    if (valid && expected) {
      EXPECT_EQ(std::vector<std::string>(args.begin(), args.end()), *expected) << line;
    }
  }
}

TEST(CommandParser, SaysHowMuchIsMissing) {
  CommandParser parser;
  EXPECT_EQ(parser.parse("*2\r\n$3"), Status::kNeedMore);
  EXPECT_EQ(parser.wanted(), 0u);
  EXPECT_EQ(parser.parse("*2\r\n$3\r\nGET\r\n$1000\r\nab"), Status::kNeedMore);
  EXPECT_EQ(parser.wanted(), 1000u);
}

// Every argument arrives with a call of its own and is looked at once: a quadratic parser would
// need 5e9 steps here.
TEST(CommandParser, ManyArgumentsInPieces) {
  constexpr size_t kArgs = 100'000;
  std::string input;
  std::vector<size_t> ends;
  append_array_header(input, kArgs);
  for (size_t i = 0; i < kArgs; ++i) {
    append_bulk(input, std::to_string(i));
    ends.push_back(input.size() - 1);
  }
  CommandParser parser;
  for (size_t end : ends) {
    ASSERT_EQ(parser.parse(std::string_view(input).substr(0, end)), Status::kNeedMore);
  }
  ASSERT_EQ(parser.parse(input), Status::kCommand);
  ASSERT_EQ(parser.args().size(), kArgs);
  EXPECT_EQ(parser.args()[0], "0");
  EXPECT_EQ(parser.args()[99'999], "99999");
  EXPECT_EQ(parser.consumed(), input.size());
}

TEST(CommandParser, SmallWhenIdle) { EXPECT_LE(sizeof(CommandParser), 96u); }

TEST(CommandParser, WrittenCommandsParseBack) {
  const uint64_t seed = system_seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    Commands commands(1 + random.below(4));
    std::string input;
    for (auto& command : commands) {
      command.resize(random.below(6));
      for (auto& arg : command) {
        arg.resize(random.below(4) == 0 ? random.below(300) : random.below(8));
        for (char& byte : arg) byte = "\r\n$*a\0\"1"[random.below(8)];
      }
      std::vector<std::string_view> views(command.begin(), command.end());
      append_command(input, views);
    }
    std::vector<size_t> cuts(random.below(8));
    for (size_t& cut : cuts) cut = random.below(input.size() + 1);
    std::sort(cuts.begin(), cuts.end());
    const Parsed parsed = parse_all(input, cuts);
    ASSERT_EQ(parsed.commands, commands);
    ASSERT_EQ(parsed.left, 0u);
  }
}

}  // namespace
}  // namespace ballast::proto
