// SPDX-License-Identifier: Apache-2.0
#include "proto/monitor_line.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace ballast::proto {
namespace {

std::vector<std::string> parse(std::string_view line, bool cut = false) {
  MonitorLine monitor;
  if (!monitor.parse(line, cut)) return {"bad"};
  return {monitor.args().begin(), monitor.args().end()};
}

using Words = std::vector<std::string>;

TEST(MonitorLine, HeadSaysWhenWhereAndWho) {
  MonitorLine line;
  ASSERT_TRUE(line.parse(R"(1339518083.107412 [3 127.0.0.1:60866] "keys" "*")"));
  EXPECT_EQ(line.time(), 1339518083 * kSecond + 107'412'000);
  EXPECT_EQ(line.database(), 3);
  EXPECT_FALSE(line.by_script());
  EXPECT_EQ(line.args()[1], "*");
  ASSERT_TRUE(line.parse(R"(+1339518083.1 [0 lua] "get" "x")"));
  EXPECT_TRUE(line.by_script());
  EXPECT_EQ(line.time() % kSecond, 100 * kMillisecond);
  ASSERT_TRUE(line.parse(R"(1339518083.107412 [0 unix:/tmp/a socket] "get" "x")"));
  ASSERT_TRUE(line.parse(R"(1339518083.107412 [0 [::1]:6000] "get" "x")"));
  EXPECT_FALSE(line.by_script());
}

TEST(MonitorLine, EscapesAreUndone) {
  const std::string head = "1.0 [0 127.0.0.1:1] ";
  EXPECT_EQ(parse(head + R"("set" "k\"\\x01" "\x00\xff\n\r\t\a\b" "")"),
            (Words{"set", "k\"\\x01", std::string("\0\xff\n\r\t\a\b", 7), ""}));
  EXPECT_EQ(parse(head + R"("] \"" "\xzz")"), (Words{"] \"", "xzz"}));
}

TEST(MonitorLine, WhatIsNotMonitorsIsRefused) {
  for (const char* line : {"",
                           "OK",
                           "+OK",
                           "user:1 12",
                           "1339518083.107412",
                           "1339518083.107412 ",
                           "1339518083.107412 [0 x]",
                           R"(1339518083.107412 [0 x] get)",
                           R"(.1 [0 x] "get")",
                           R"(1. [0 x] "get")",
                           R"(-1.5 [0 x] "get")",
                           R"(9331518083.1 [0 x] "get")",
                           R"(1.1234567890 [0 x] "get")",
                           R"(1.0 [x y] "get")",
                           R"(1.0 [0] "get")",
                           R"(1.0 [0 x] "get)",
                           R"(1.0 [0 x] "get" )",
                           R"(1.0 [0 x] "get""x")",
                           R"(1.0 [0 x] "get" "x\)",
                           R"(1.0 0 x] "get")"}) {
    EXPECT_EQ(parse(line), Words{"bad"}) << line;
  }
}

TEST(MonitorLine, ACutLineKeepsWhatIsWhole) {
  const std::string head = "1.0 [0 127.0.0.1:1] ";
  EXPECT_EQ(parse(head + R"("set" "k" "val)", true), (Words{"set", "k"}));
  EXPECT_EQ(parse(head + R"("set" "k" "v\)", true), (Words{"set", "k"}));
  EXPECT_EQ(parse(head + R"("set" "k" )", true), (Words{"set", "k"}));
  EXPECT_EQ(parse(head + R"("set" "k"x)", true), Words{"bad"});
  EXPECT_EQ(parse(head + R"("se)", true), Words{"bad"});
}

// As sdscatrepr writes it.
std::string as_monitor_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char byte : text) {
    constexpr std::string_view kPlain = "\n\r\t\a\b";
    constexpr std::string_view kLetters = "nrtab";
    const size_t at = kPlain.find(byte);
    if (at != std::string_view::npos) {
      out += std::string("\\") + kLetters[at];
    } else if (byte == '"' || byte == '\\') {
      out += std::string("\\") + byte;
    } else if (byte >= ' ' && byte <= '~') {
      out += byte;
    } else {
      constexpr const char* kDigits = "0123456789abcdef";
      const auto value = static_cast<unsigned char>(byte);
      out += std::string("\\x") + kDigits[value / 16] + kDigits[value % 16];
    }
  }
  return out + "\"";
}

TEST(MonitorLine, WhateverIsQuotedComesBack) {
  Random random(11);
  for (int round = 0; round < 2000; ++round) {
    std::string line = "1.5 [0 127.0.0.1:1]";
    Words words;
    for (size_t i = 1 + random.below(4); i > 0; --i) {
      std::string word(random.below(12), 'x');
      for (char& byte : word) byte = static_cast<char>(random.below(256));
      line += " " + as_monitor_quotes(word);
      words.push_back(word);
    }
    ASSERT_EQ(parse(line), words) << line;
  }
}

}  // namespace
}  // namespace ballast::proto
