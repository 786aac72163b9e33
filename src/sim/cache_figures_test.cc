// SPDX-License-Identifier: Apache-2.0
#include "sim/cache_figures.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ballast::sim {
namespace {

// The paper's tier at an eighth of its size; few objects a node, so that the nodes matter as much.
CacheFigureOptions small() {
  CacheFigureOptions options;
  options.scenario.racks = options.scenario.spines = 8;
  options.scenario.servers_per_rack = 8;
  options.scenario.objects = 10'000'000;
  options.timing.measured = kSecond;
  options.queueing.requests_per_unit = 500;
  options.runs.count = 1;
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

TEST(CacheFigures, SkewParksTheLoadOnFewServersUnlessObjectsAreCached) {
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

TEST(CacheFigures, MoreObjectsInTheNodesHelpDistCache) {
  const Figure figure = cache_size_figure(small());
  EXPECT_GT(at(figure, "DistCache", "1600"), 1.5 * at(figure, "DistCache", "16"));
  EXPECT_DOUBLE_EQ(at(figure, "NoCache", "1600"), at(figure, "NoCache", "16"));
}

TEST(CacheFigures, WritesHurtReplicationMoreThanDistCache) {
  const Figure figure = writes_figure(small());
  const double kept = at(figure, "DistCache", "5 %") / at(figure, "DistCache", "0 %");
  const double replicated =
      at(figure, "CacheReplication", "5 %") / at(figure, "CacheReplication", "0 %");
  EXPECT_LT(replicated, 0.75 * kept);
  EXPECT_LT(at(figure, "DistCache", "100 %"), at(figure, "NoCache", "100 %"));
}

TEST(CacheFigures, AFailureCostsAnEighthInThePapersNetworkUntilItIsRemapped) {
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

TEST(CacheFigures, ARandomSplitsQueuesGrowWhereTwoChoicesKeepsThemShort) {
  CacheFigureOptions options = small();
  options.scenario.alpha = 1.1;
  const Figure figure = stability_figure(options);
  EXPECT_GT(at(figure, "random split", "10"), 1.5 * at(figure, "random split", "5"));
  EXPECT_GT(at(figure, "random split", "10"), 20 * at(figure, "two choices", "10"));
  EXPECT_LT(at(figure, "two choices", "10"), 500);
}

TEST(CacheFigures, TheTheorysColumnsAgree) {
  const Figure figure = theory_figure(small());
  for (const std::string& x : figure.x) {
    EXPECT_LE(at(figure, "nodes, random split", x), at(figure, "nodes, best split", x) * 1.000001);
    EXPECT_LE(at(figure, "nodes, best split", x), at(figure, "nodes, 3 layers", x) * 1.000001);
    EXPECT_GE(at(figure, "nodes in Γ(J)", x), 1);
  }
}

TEST(CacheFigures, HerdsOfRoutersWithOldLoadsSustainLess) {
  CacheFigureOptions options = small();
  options.scenario.alpha = 1.1;  // the nodes bind
  const Figure figure = telemetry_figure(options);
  const double fresh = at(figure, "32 routers, own sent added", "each reply");
  EXPECT_GT(fresh, 90);
  EXPECT_LT(at(figure, "32 routers, reports only", "1 s"), 0.9 * fresh);
}

}  // namespace
}  // namespace ballast::sim
