// SPDX-License-Identifier: Apache-2.0
#include "sim/lb_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ballast::sim {
namespace {

// A tenth of the instances, each of a tenth of the capacity, for 25 flows at full rate.
LbFigureOptions small() {
  LbFigureOptions options;
  options.instances = 10;
  options.capacity = 12.5e6;
  options.model.flow_rate = 0.5e6;
  options.model.sizes = *FlowSizes::of_law("web-search", 2e5);
  options.measured = 8 * kSecond;
  options.runs.count = 2;
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

// The note that begins so, without its beginning.
std::string note(const Figure& figure, const std::string& beginning) {
  for (const std::string& each : figure.notes) {
    if (each.starts_with(beginning)) return each.substr(beginning.size());
  }
  ADD_FAILURE() << "no note begins with: " << beginning;
  return "";
}

TEST(LbFigures, CapacitiesHaveTheirMeanAndSpread) {
  LbFigureOptions options = small();
  options.spread = 8;
  const auto capacities = capacities_of(options);
  EXPECT_NEAR(std::accumulate(capacities.begin(), capacities.end(), 0.0), 10 * 12.5e6, 1);
  EXPECT_NEAR(capacities.back() / capacities.front(), 8, 1e-9);
  options.instances = 1;
  EXPECT_EQ(capacities_of(options), std::vector<double>{12.5e6});
}

TEST(LbFigures, AwfdCarriesMoreThanEcmpAndNearlyAsMuchAsTheIdeal) {
  const Figure figure = load_figure(small());
  EXPECT_EQ(figure.y_title, "aggregate throughput, Gbit/s");
  EXPECT_GT(at(figure, "AWFD", "0.95"), 1.15 * at(figure, "ECMP", "0.95"));
  EXPECT_GT(at(figure, "AWFD", "0.95"), 1.03 * at(figure, "WCMP", "0.95"));
  EXPECT_GT(at(figure, "AWFD", "0.95"), 0.95 * at(figure, "ideal", "0.95"));
  EXPECT_NEAR(at(figure, "ideal", "0.9") / at(figure, "ideal", "0.5"), 1.8, 0.2);
}

TEST(LbFigures, TheMetricIsWhatWasAskedFor) {
  LbFigureOptions options = small();
  options.metric = find_flow_metric("refused");
  const Figure refused = load_figure(options);
  EXPECT_EQ(refused.y_title, "flows refused, %");
  EXPECT_GT(at(refused, "ECMP", "1"), 5);
  EXPECT_LT(at(refused, "ideal", "0.5"), 0.5);
  options.metric = find_flow_metric("completion");
  const Figure completion = load_figure(options);
  EXPECT_NEAR(at(completion, "ideal", "0.5"), 400, 60);  // 2e5 bytes at 5e5 a second
  EXPECT_GT(at(completion, "WCMP", "0.9"), 1.25 * at(completion, "AWFD", "0.9"));
  options.metric = find_flow_metric("p99");
  EXPECT_GT(at(load_figure(options), "ideal", "0.5"), 3 * at(completion, "ideal", "0.5"));
  options.metric = find_flow_metric("utilisation");
  EXPECT_NEAR(at(load_figure(options), "ideal", "0.5"), 50, 12);
  EXPECT_FALSE(find_flow_metric("speed"));
}

TEST(LbFigures, NotesSayWhereTheClaimsHoldByTheNumbers) {
  const Figure figure = heterogeneity_figure(small());
  const std::string ecmp = note(figure, "AWFD at least 20 % better than ECMP: in throughput at ");
  const std::string throughput = ecmp.substr(0, ecmp.find(" in mean"));
  for (const std::string& x : figure.x) {
    const bool better = at(figure, "AWFD", x) >= 1.2 * at(figure, "ECMP", x);
    EXPECT_EQ(("; " + throughput).find("; " + x + ";") != std::string::npos, better)
        << x << " in " << throughput;
  }
  EXPECT_NE(throughput.find("4, 0|90 %"), std::string::npos) << throughput;
  EXPECT_LT(at(figure, "AWFD", "1"), 1.05 * at(figure, "ECMP", "1"));
  EXPECT_GT(at(figure, "AWFD", "16"), 1.2 * at(figure, "ECMP", "16"));
  EXPECT_LT(at(figure, "AWFD", "16"), 1.05 * at(figure, "WCMP", "16"));
  EXPECT_GT(at(figure, "AWFD", "4, 0|90 %"), 1.2 * at(figure, "WCMP", "4, 0|90 %"));
  note(figure, "AWFD within 5 % of the ideal: in throughput ");
}

TEST(LbFigures, MoreWeightsAndFresherPollsHelp) {
  const Figure figure = m_figure(small());
  EXPECT_GT(at(figure, "polls each 20 ms", "0"), 1.3 * at(figure, "polls each 20 ms", "16"));
  EXPECT_GT(at(figure, "each 500 ms", "1"), 1.1 * at(figure, "each 500 ms", "64"));
  EXPECT_GT(at(figure, "each 2 s", "16"), 1.1 * at(figure, "polls each 20 ms", "16"));
  EXPECT_EQ(at(figure, "ideal", "0"), at(figure, "ideal", "1024"));
  EXPECT_EQ(at(figure, "each 2 s", "0"), at(figure, "polls each 20 ms", "0"));
}

TEST(LbFigures, OldPollsCostTime) {
  const Figure figure = interval_figure(small());
  EXPECT_GT(at(figure, "AWFD", "5 s"), 1.15 * at(figure, "AWFD", "50 ms"));
  EXPECT_GT(at(figure, "least congested", "1 s"), at(figure, "AWFD", "1 s"));
  EXPECT_GT(at(figure, "AWFD, half the polls missed", "1 s"), at(figure, "AWFD", "100 ms"));
  EXPECT_EQ(at(figure, "WCMP", "10 ms"), at(figure, "WCMP", "5 s"));
}

TEST(LbFigures, AwfdFollowsAChangeAndWcmpNeverDoes) {
  const Figure figure = convergence_figure(small());
  EXPECT_GT(at(figure, "AWFD", "-0.2"), 93);
  EXPECT_LT(at(figure, "AWFD", "0"), 90);
  EXPECT_GT(at(figure, "AWFD", "1"), 95);
  EXPECT_LT(at(figure, "AWFD, each 2 s", "0.2"), 70);
  EXPECT_LT(at(figure, "WCMP", "4"), 65);
  EXPECT_NE(note(figure, "AWFD: within 5 % of the ideal for good from 0.").find("s after"),
            std::string::npos);
  note(figure, "WCMP: not within 5 % of the ideal");
}

TEST(LbFigures, SizesAndLawsAreTheColumns) {
  LbFigureOptions options = small();
  options.load = 0.7;
  options.measured = 4 * kSecond;
  options.runs.count = 1;
  const Figure figure = flowsize_figure(options);
  EXPECT_EQ(figure.y_title, "mean completion time of a flow, ms");
  EXPECT_NEAR(at(figure, "ideal", "0.02 MB"), 40, 8);
  EXPECT_GT(at(figure, "ideal", "2 MB"), 2500);
  EXPECT_GT(at(figure, "ECMP", "exponential"), 1.2 * at(figure, "ideal", "exponential"));
  EXPECT_EQ(at(figure, "AWFD", "web-search"), at(figure, "AWFD", "0.2 MB"));
}

TEST(LbFigures, TheRingKeepsWhatTheTotalVariationAllowsAndTheSecondChanceMore) {
  LbFigureOptions options = small();
  options.instances = 40;
  const Figure figure = lost_balancer_figure(options);
  for (const std::string& most : figure.x) {
    const double ring = at(figure, "ring", most);
    EXPECT_NEAR(ring, at(figure, "1 - total variation", most), 0.7) << most;
    EXPECT_GT(ring, at(figure, "AWFD, no ring", most) + 20) << most;
    EXPECT_GT(at(figure, "ring and second chance", most), ring) << most;
  }
}

}  // namespace
}  // namespace ballast::sim
