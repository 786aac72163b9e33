// SPDX-License-Identifier: Apache-2.0
#include "proto/metric_text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ballast::proto {
namespace {

constexpr const char* kPage =
    "# HELP load One of many.\n"
    "# TYPE load gauge\n"
    "load{core=\"0\",kind=\"user\"} 0.25 1395066363000\n"
    "load{core=\"1\",kind=\"user\",} 7.5e-1\n"
    "  load_all  3\n"
    "load_more{path=\"C:\\\\DIR\\\\\",error=\"a \\\"b\\\"\\n}\"} 12\r\n"
    "bad{core=} 1\n"
    "nothing NaN\n"
    "most{le=\"+Inf\"} +Inf\n"
    "least -Inf -1\n"
    "twice 1\n"
    "twice 1\n"
    "half 0x1p-1\n"
    "late 1 soon\n"
    "a:b:c 4";

Result<double> find(const char* selector) {
  const auto parsed = parse_metric_selector(selector);
  if (!parsed) return Unexpected(parsed.error());
  return find_metric(kPage, *parsed);
}

TEST(FindMetric, TakesTheOneSampleThatIsMeant) {
  EXPECT_EQ(find("load{core=\"0\"}"), 0.25);
  EXPECT_EQ(find("load{ kind=\"user\" , core = \"1\" }"), 0.75);
  EXPECT_EQ(find("load_all"), 3);
  EXPECT_EQ(find("load_all{}"), 3);
  EXPECT_EQ(find("load_more{error=\"a \\\"b\\\"\\n}\"}"), 12);
  EXPECT_EQ(find("load_more{path=\"C:\\\\DIR\\\\\"}"), 12);
  EXPECT_EQ(find("a:b:c"), 4);
  EXPECT_TRUE(std::isnan(*find("nothing")));
  EXPECT_EQ(find("most"), INFINITY);
  EXPECT_EQ(find("least"), -INFINITY);
}

TEST(FindMetric, GuessesNothing) {
  for (const char* selector : {"load", "load{kind=\"user\"}", "load{core=\"2\"}", "loa", "load_",
                               "bad", "twice", "late", "half", "core"})
    EXPECT_FALSE(find(selector)) << selector;
  EXPECT_FALSE(find_metric("", {"load", {}}));
  EXPECT_FALSE(find_metric("load", {"load", {}}));
  EXPECT_FALSE(find_metric("load{a=\"b", {"load", {}}));
  EXPECT_FALSE(find_metric("load{a=\"b\"} ", {"load", {}}));
  EXPECT_FALSE(find_metric("load +-1", {"load", {}}));
  EXPECT_EQ(find_metric("load 1e999", {"load", {}}), INFINITY);
}

TEST(ParseMetricSelector, RefusesWhatIsNone) {
  for (const char* text :
       {"", " ", "9load", "load{", "load{a}", "load{a=b}", "load{a=\"b\"", "load 1",
        "load{a!=\"b\"}", "load{a=\"b\"}}", "{a=\"b\"}", "load{a=\"b\" c=\"d\"}"})
    EXPECT_FALSE(parse_metric_selector(text)) << text;
}

}  // namespace
}  // namespace ballast::proto
