// SPDX-License-Identifier: Apache-2.0
#include "proto/json_number.h"

#include <gtest/gtest.h>

#include <string>

namespace ballast::proto {
namespace {

TEST(FindJsonNumber, FollowsThePath) {
  constexpr const char* kText = R"({"cpu":{"utilisation":0.5,"cores":[1,{"load":-2e-1}]},"n":7,
                                    "text":"1","none":null,"":{"a":3}})";
  EXPECT_EQ(find_json_number(kText, "cpu.utilisation"), 0.5);
  EXPECT_EQ(find_json_number(kText, "cpu.cores.0"), 1);
  EXPECT_EQ(find_json_number(kText, "cpu.cores.1.load"), -0.2);
  EXPECT_EQ(find_json_number(kText, "n"), 7);
  EXPECT_EQ(find_json_number(kText, ".a"), 3);
  EXPECT_EQ(find_json_number("0.25\n", ""), 0.25);
  for (const char* path : {"", "cpu", "cpu.cores", "cpu.cores.2", "cpu.cores.-1", "cpu.cores.0.x",
                           "cpu.cores.x", "text", "none", "missing", "n.0", "n..", "cpu..cores"})
    EXPECT_FALSE(find_json_number(kText, path)) << path;
}

TEST(FindJsonNumber, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "{\"n\":NaN}", "{\"n\":Infinity}", "{\"n\":1e999}",
                           "{\"n\":1}x", "{\"n\":01}", "{'n':1}"})
    EXPECT_FALSE(find_json_number(text, "n")) << text;
  const std::string deep(65'536, '[');
  EXPECT_FALSE(find_json_number(deep, "n"));
  EXPECT_FALSE(find_json_number(deep + std::string(65'536, ']'), "n"));
}

}  // namespace
}  // namespace ballast::proto
