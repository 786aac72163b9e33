// SPDX-License-Identifier: Apache-2.0
#include "telemetry/table.h"

#include <gtest/gtest.h>

namespace ballast::telemetry {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({{"node"}, {"load", true}, {"state"}});
  EXPECT_TRUE(table.empty());
  table.add({"spine-0", "7", "up"});
  table.add({"l", "12345", ""});
  EXPECT_EQ(table.text(),
            "node      load  state\n"
            "spine-0      7  up\n"
            "l        12345\n");
}

TEST(Table, CountsCodePointsAndDisarmsControlBytes) {
  Table table({{"a"}, {"b"}});
  table.add({"\xc3\xa9", "x"});
  table.add({"\x1b[2J", "y"});
  EXPECT_EQ(table.text(),
            "a     b\n"
            "\xc3\xa9     x\n"
            "?[2J  y\n");
}

}  // namespace
}  // namespace ballast::telemetry
