// SPDX-License-Identifier: Apache-2.0
#include "sim/figure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/figure_report.h"

namespace ballast::sim {
namespace {

// The paper's tier at an eighth of its size; few objects a node, so that the nodes matter as much.
FigureOptions small() {
  FigureOptions options;
  options.scenario.racks = options.scenario.spines = 8;
  options.scenario.servers_per_rack = 8;
  options.scenario.objects = 10'000'000;
  options.timing.measured = kSecond;
  options.queueing.requests_per_unit = 500;
  options.runs = 1;
  return options;
}

double at(const Figure& figure, const std::string& series, const std::string& x) {
  const auto column = std::find_if(figure.series.begin(), figure.series.end(),
                                   [&](const Series& each) { return each.name == series; });
  const auto row = std::find(figure.x.begin(), figure.x.end(), x);
  if (column == figure.series.end() || row == figure.x.end()) {
    ADD_FAILURE() << "no " << series << " at " << x;
    return 0;
  }
  return column->cells[static_cast<size_t>(row - figure.x.begin())].mean;
}

TEST(Figure, SkewParksTheLoadOnFewServersUnlessObjectsAreCached) {
  const Figure figure = skew_figure(small());
  const double none = at(figure, "NoCache", "0.99");
  const double partition = at(figure, "CachePartition", "0.99");
  const double both = at(figure, "DistCache", "0.99");
  EXPECT_LT(none * 1.2, partition);
  EXPECT_LT(partition * 1.2, both);
  EXPECT_GE(at(figure, "CacheReplication", "0.99"), both * 0.95);
  EXPECT_GT(at(figure, "DistCache sustained", "0.99"), both * 0.88);
  EXPECT_LT(at(figure, "DistCache sustained", "0.99"), both * 1.11);
  EXPECT_GT(at(figure, "NoCache", "uniform"), 60);
}

TEST(Figure, MoreObjectsInTheNodesHelpDistCache) {
  const Figure figure = cache_size_figure(small());
  EXPECT_GT(at(figure, "DistCache", "1600"), 1.5 * at(figure, "DistCache", "16"));
  EXPECT_DOUBLE_EQ(at(figure, "NoCache", "1600"), at(figure, "NoCache", "16"));
}

TEST(Figure, WritesHurtReplicationMoreThanDistCache) {
  const Figure figure = writes_figure(small());
  const double kept = at(figure, "DistCache", "5 %") / at(figure, "DistCache", "0 %");
  const double replicated =
      at(figure, "CacheReplication", "5 %") / at(figure, "CacheReplication", "0 %");
  EXPECT_LT(replicated, 0.75 * kept);
  EXPECT_LT(at(figure, "DistCache", "100 %"), at(figure, "NoCache", "100 %"));
}

TEST(Figure, AFailureCostsAnEighthInThePapersNetworkUntilItIsRemapped) {
  const Figure figure = failure_figure(small());
  EXPECT_GT(at(figure, "paper's network", "5"), 99);
  EXPECT_NEAR(at(figure, "paper's network", "9"), 87.5, 8);
  EXPECT_LT(at(figure, "Ballast", "9"), 99.5);
  EXPECT_GT(at(figure, "Ballast", "9"), at(figure, "paper's network", "9"));
  for (const char* second : {"12", "17", "20"}) {
    EXPECT_GT(at(figure, "paper's network", second), 99) << second;
    EXPECT_GT(at(figure, "Ballast", second), 99) << second;
  }
}

TEST(Figure, ARandomSplitsQueuesGrowWhereTwoChoicesKeepsThemShort) {
  FigureOptions options = small();
  options.scenario.alpha = 1.1;
  const Figure figure = stability_figure(options);
  EXPECT_GT(at(figure, "random split", "10"), 1.5 * at(figure, "random split", "5"));
  EXPECT_GT(at(figure, "random split", "10"), 20 * at(figure, "two choices", "10"));
  EXPECT_LT(at(figure, "two choices", "10"), 500);
}

TEST(Figure, TheTheorysColumnsAgree) {
  const Figure figure = theory_figure(small());
  for (const std::string& x : figure.x) {
    EXPECT_LE(at(figure, "nodes, random split", x), at(figure, "nodes, best split", x) * 1.000001);
    EXPECT_LE(at(figure, "nodes, best split", x), at(figure, "nodes, 3 layers", x) * 1.000001);
    EXPECT_GE(at(figure, "nodes in Γ(J)", x), 1);
  }
}

TEST(Figure, HerdsOfRoutersWithOldLoadsSustainLess) {
  FigureOptions options = small();
  options.scenario.alpha = 1.1;  // the nodes bind
  const Figure figure = telemetry_figure(options);
  const double fresh = at(figure, "32 routers, own sent added", "each reply");
  EXPECT_GT(fresh, 90);
  EXPECT_LT(at(figure, "32 routers, reports only", "1 s"), 0.9 * fresh);
}

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
  return figure;
}

TEST(FigureReport, TextNamesSeedsAndIntervals) {
  const std::string text = figure_text(sample());
  for (const char* part : {"1,234", "0.5 ±0.25", "seeds 7", "- so & so", "a <b> & c"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(FigureReport, JsonHoldsEveryNumber) {
  const auto json = nlohmann::json::parse(figure_json(sample(), {}));
  EXPECT_EQ(json["series"][0]["mean"][0], 1234.4);
  EXPECT_EQ(json["series"][0]["confidence_95_half_width"][1], 0.25);
  EXPECT_TRUE(json["series"][1]["mean"][0].is_null());
  EXPECT_EQ(json["seeds"][0], 7);
  EXPECT_EQ(json["settings"]["racks"], 32);
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
}

}  // namespace
}  // namespace ballast::sim
