// SPDX-License-Identifier: Apache-2.0
#include "app/command_line.h"

#include <gtest/gtest.h>

namespace ballast::app {
namespace {

struct Seen {
  std::vector<std::string> racks;
  std::vector<std::string> sample;
  std::vector<std::string> json;
};

CommandLine example(Seen& seen) {
  const auto into = [](std::vector<std::string>& list) {
    return [&list](const std::string& text) -> Result<> {
      if (text == "bad") return fail(ErrorCode::kInvalid, "\"bad\" is not good");
      list.push_back(text);
      return {};
    };
  };
  return {.name = "ballast try",
          .summary = "is tried",
          .flags = {{.name = "--rack",
                     .value = "H:P",
                     .help = "a rack",
                     .repeated = true,
                     .set = into(seen.racks)},
                    {.name = "-s,--sample",
                     .value = "COUNT",
                     .help = "one in this many",
                     .default_text = "64",
                     .group = "Cache",
                     .set = into(seen.sample)},
                    {.name = "--json", .help = "as JSON", .set = into(seen.json)}}};
}

std::string stderr_of(const std::vector<std::string>& arguments, int status) {
  Seen seen;
  testing::internal::CaptureStderr();
  const auto got = parse_command_line(example(seen), arguments);
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(got.value_or(-1), status) << text;
  return text;
}

TEST(CommandLine, RepeatedFlagsAllCountOthersTheLast) {
  Seen seen;
  const auto status = parse_command_line(
      example(seen), {"--rack", "a:1,b:2", "--rack=c:3", "-s", "1", "--sample", "2", "--json"});
  EXPECT_FALSE(status);
  EXPECT_EQ(seen.racks, (std::vector<std::string>{"a:1,b:2", "c:3"}));
  EXPECT_EQ(seen.sample, std::vector<std::string>{"2"});
  EXPECT_EQ(seen.json, std::vector<std::string>{"true"});
}

TEST(CommandLine, ASwitchCanBeSetToFalse) {
  Seen seen;
  EXPECT_FALSE(parse_command_line(example(seen), {"--json=false"}));
  EXPECT_EQ(seen.json, std::vector<std::string>{"false"});
}

TEST(CommandLine, UsageErrorsAreOneLineAndStatusTwo) {
  EXPECT_EQ(stderr_of({"--sampel", "3"}, 2),
            "ballast try: unknown option --sampel; did you mean --sample? (see ballast try "
            "--help)\n");
  EXPECT_NE(stderr_of({"--sample"}, 2).find("--sample"), std::string::npos);
  EXPECT_NE(stderr_of({"stray"}, 2).find("unexpected argument \"stray\""), std::string::npos);
  EXPECT_EQ(stderr_of({"--sample", "bad"}, 2), "ballast try: --sample: \"bad\" is not good\n");
}

TEST(CommandLine, HelpShowsUnitAndDefault) {
  Seen seen;
  testing::internal::CaptureStdout();
  EXPECT_EQ(parse_command_line(example(seen), {"--help"}).value_or(-1), 0);
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_NE(help.find("  -s, --sample COUNT              one in this many [64]\n"),
            std::string::npos)
      << help;
  EXPECT_NE(help.find("a rack; may be repeated"), std::string::npos) << help;
  EXPECT_NE(help.find("\nCache:\n"), std::string::npos) << help;
}

}  // namespace
}  // namespace ballast::app
