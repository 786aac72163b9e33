// SPDX-License-Identifier: Apache-2.0
#include "sim/figure.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/figure_report.h"

namespace ballast::sim {
namespace {

TEST(Figure, TheLineOfScaleIsJudgedByItsFit) {
  const std::vector<double> x{1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(linear_fit(x, std::vector<double>{3, 5, 7, 9}), 1);
  EXPECT_LT(linear_fit(x, std::vector<double>{3, 5, 5, 5}), 0.7);
}

Figure sample() {
  Figure figure{.name = "x", .title = "a <b> & c", .x_title = "n", .y_title = "y"};
  figure.x = {"1", "2"};
  figure.series = {{"one", {{1234.4, 0}, {0.5, 0.25}}}, {"two", {{1.0 / 0.0, 0}, {3, 0}}, false}};
  figure.notes = {"so & so"};
  figure.seeds = {7};
  figure.settings = {{"racks", uint64_t{32}}, {"service", "fixed"}, {"paced", true}};
  return figure;
}

TEST(FigureReport, TextNamesSeedsAndIntervals) {
  const std::string text = figure_text(sample());
  for (const char* part : {"1,234", "0.5 ±0.25", "seeds 7", "- so & so", "a <b> & c"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(FigureReport, JsonHoldsEveryNumber) {
  const auto json = nlohmann::json::parse(figure_json(sample()));
  EXPECT_EQ(json["series"][0]["mean"][0], 1234.4);
  EXPECT_EQ(json["series"][0]["confidence_95_half_width"][1], 0.25);
  EXPECT_TRUE(json["series"][1]["mean"][0].is_null());
  EXPECT_EQ(json["seeds"][0], 7);
  EXPECT_EQ(json["settings"]["racks"], 32);
  EXPECT_EQ(json["settings"]["service"], "fixed");
  EXPECT_EQ(json["settings"]["paced"], true);
}

TEST(FigureReport, ThePageIsSelfContainedAndEscaped) {
  const std::string page = figure_html(sample());
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("a &lt;b&gt; &amp; c"), std::string::npos);
  EXPECT_NE(page.find("1,234"), std::string::npos);
  for (const char* absent : {"<script", "src=", "href=", "<b>", "nan", "inf\""})
    EXPECT_EQ(page.find(absent), std::string::npos) << absent;
  // One line is plotted, both are in the table.
  EXPECT_EQ(page.find("<polyline"), page.rfind("<polyline"));
  EXPECT_NE(page.find("<th>two</th>"), std::string::npos);
  EXPECT_NE(page.find("racks 32, "), std::string::npos);
  EXPECT_NE(page.find("service fixed"), std::string::npos);
}

TEST(FigureReport, ALogarithmicAxisEndsNearTheValues) {
  Figure figure;
  figure.x = {"a", "b"};
  figure.series = {{.name = "one", .cells = {{1500, 0}, {23, 0}}}};
  const std::string svg = figure_svg(figure);
  for (const char* tick : {">20<", ">50<", ">100<", ">200<", ">500<", ">1,000<", ">2,000<"})
    EXPECT_NE(svg.find(tick), std::string::npos) << tick;
  EXPECT_EQ(svg.find(">10<"), std::string::npos);
  EXPECT_EQ(svg.find(">5,000<"), std::string::npos);
}

}  // namespace
}  // namespace ballast::sim
