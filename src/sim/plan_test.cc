// SPDX-License-Identifier: Apache-2.0
#include "sim/plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/demand.h"
#include "sim/fluid.h"
#include "sim/plan_report.h"

namespace ballast::sim {
namespace {

DemandOf zipf(double alpha, uint64_t objects = 1'000'000) {
  return [=](size_t head) { return zipf_demand(objects, alpha, head); };
}

Target target_of(double rate, size_t servers) {
  Target target;
  target.rate = rate;
  target.server_rate = target.node_rate = 1000;
  target.servers = servers;
  target.runs = 2;
  return target;
}

bool carries(const DemandOf& demand, const Target& target, size_t nodes, size_t objects) {
  for (size_t run = 0; run < target.runs; ++run) {
    Scenario tier;
    tier.racks = std::min(nodes, target.servers);
    tier.spines = nodes;
    tier.server_count = target.servers;
    tier.objects_per_node = objects;
    tier.node_capacity = target.node_rate / target.server_rate;
    tier.writes = target.writes;
    tier.direct = target.direct;
    tier.seed = target.seed + run;
    const Layout layout = make_layout(tier, demand(65'536));
    if (fluid_bound(layout).rate * target.server_rate < target.wanted()) return false;
  }
  return true;
}

TEST(Plan, TheTierCarriesTheRateAndASmallerOneDoesNot) {
  const Target target = target_of(16'000, 16);
  const Plan plan = make_plan(zipf(0.99), target);
  ASSERT_EQ(plan.verdict, Plan::Verdict::kPlanned) << plan.reason;
  EXPECT_TRUE(carries(zipf(0.99), target, plan.tier.spines, plan.tier.objects_per_node));
  EXPECT_FALSE(carries(zipf(0.99), target, plan.tier.spines, plan.tier.objects_per_node / 2));
  ASSERT_GT(plan.tier.spines, 1U);
  for (size_t objects = 1; objects < 1000; objects *= 2)
    EXPECT_FALSE(carries(zipf(0.99), target, plan.tier.spines - 1, objects)) << objects;
  EXPECT_LT(plan.busiest_server, 1 / 1.2 + 1e-9);
  EXPECT_LT(plan.busiest_nodes, 1 / 1.2 + 1e-9);
  EXPECT_LT(plan.lost, 0.01);
  EXPECT_EQ(plan.mechanisms.front().scheme, Scheme::kNoCache);
  EXPECT_LT(plan.mechanisms.front().least, target.rate);
}

TEST(Plan, NothingIsPlannedWhereTheServersCarryTheRate) {
  const Plan plan = make_plan(zipf(0), target_of(10'000, 16));
  EXPECT_EQ(plan.verdict, Plan::Verdict::kNotNeeded);
  EXPECT_EQ(plan.mechanisms.size(), 1U);
  EXPECT_GE(plan.mechanisms.front().least, 12'000);
}

TEST(Plan, AKeyTooHotForTwoNodesIsNamed) {
  const Plan plan = make_plan(zipf(0.99), target_of(60'000, 64));
  EXPECT_EQ(plan.verdict, Plan::Verdict::kMoreCopies);
  EXPECT_NE(plan.reason.find("its two copies answer 2000"), std::string::npos) << plan.reason;
  ASSERT_FALSE(plan.copies_wanted.empty());
  // 1 / H of 72,000, in quarters of a node.
  EXPECT_NEAR(static_cast<double>(plan.copies_wanted.front()), 72'000 / 14.9 / 250, 2);
  EXPECT_GE(plan.mechanisms.back().least, 72'000);
  EXPECT_TRUE(plan.mechanisms.back().more_copies);
  EXPECT_LT(plan.theorem_margin, 1);
}

TEST(Plan, WhatNoCacheTakesIsImpossible) {
  Target target = target_of(16'000, 16);
  target.writes = 0.99;
  Plan plan = make_plan(zipf(0.2), target);
  EXPECT_EQ(plan.verdict, Plan::Verdict::kImpossible);
  EXPECT_NE(plan.reason.find("writes and reads that no copy answers"), std::string::npos);
  target.writes = 0;
  target.direct = 0.99;
  EXPECT_EQ(make_plan(zipf(0.2), target).verdict, Plan::Verdict::kImpossible);
  target = target_of(60'000, 100);
  target.writes = 0.5;
  plan = make_plan(zipf(0.99), target);
  EXPECT_NE(plan.reason.find("the writes to the hottest key alone"), std::string::npos);
}

TEST(Plan, TooManyColdRequestsForTheServersAreImpossible) {
  Target target = target_of(16'000, 4);
  target.most_objects_per_node = 100;
  const Plan plan = make_plan(zipf(0.5), target);
  EXPECT_EQ(plan.verdict, Plan::Verdict::kImpossible);
  EXPECT_NE(plan.reason.find("the busiest server would still get"), std::string::npos);
}

trace::Workload workload(const std::vector<uint64_t>& counts) {
  trace::Workload made;
  for (const uint64_t count : counts) {
    made.keys.push_back(
        {made.keys.size() + 100, count, 0, 0, static_cast<uint16_t>(made.keys.size() % 3)});
    made.requests += count;
  }
  made.names = {"first", "se\"cond\xff"};
  made.distinct = static_cast<double>(counts.size());
  return made;
}

double sum_of(const Demand& demand) {
  return std::accumulate(demand.head.begin(), demand.head.end(), demand.tail);
}

TEST(Demand, HeadIsMeasuredAndAllSharesAddUpToOne) {
  std::vector<uint64_t> counts;
  for (int rank = 1; rank <= 5000; ++rank) counts.push_back(static_cast<uint64_t>(20'000 / rank));
  const trace::Workload measured = workload(counts);
  const ZipfFit fit = fit_workload(measured, 0);
  ASSERT_TRUE(fit.fits) << fit.distance;
  EXPECT_NEAR(fit.alpha, 1, 0.02);
  for (const size_t head : {size_t{10}, size_t{1000}, size_t{100'000}}) {
    const Demand demand = workload_demand(measured, fit, head);
    EXPECT_NEAR(sum_of(demand), 1, 1e-9) << head;
    EXPECT_DOUBLE_EQ(demand.head[1], 10'000.0 / static_cast<double>(measured.requests));
    EXPECT_EQ(demand.keys[4].slot, 1U);
    EXPECT_EQ(demand.keys[4].hash, 104U);
  }
  // Where the measured shares end the law goes on without a step.
  const Demand demand = workload_demand(measured, fit, 100'000);
  const size_t end = measured_keys(measured, fit);
  EXPECT_NEAR(demand.head[end] / demand.head[end - 1], 1, 0.05);
}

TEST(Demand, WithoutALawEveryShareIsMeasured) {
  std::vector<uint64_t> counts(100, 1000);
  counts.resize(1100, 3);
  const trace::Workload measured = workload(counts);
  const ZipfFit fit = fit_workload(measured, 0);
  ASSERT_FALSE(fit.fits);
  const Demand demand = workload_demand(measured, fit, 50);
  EXPECT_EQ(demand.head.size(), 50U);
  EXPECT_NEAR(sum_of(demand), 1, 1e-9);
  EXPECT_GT(demand.tail_squares, 0);
}

TEST(PlanReport, SaysItInBothForms) {
  std::vector<uint64_t> counts;
  for (int rank = 1; rank <= 2000; ++rank) counts.push_back(static_cast<uint64_t>(20'000 / rank));
  PlanReport report;
  report.source = "a trace";
  report.workload = workload(counts);
  report.fit = fit_workload(*report.workload, 0);
  report.objects = report.fit.objects;
  report.target = target_of(16'000, 16);
  report.plan =
      make_plan([&](size_t head) { return workload_demand(*report.workload, report.fit, head); },
                report.target);
  report.assumed = {"nothing"};
  const std::string text = plan_text(report);
  for (const char* part : {"a trace", "Zipf 1.0", "NoCache", "DistCache", "- nothing", "first"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const auto json = nlohmann::json::parse(plan_json(report));
  EXPECT_EQ(json["hottest"][0]["key"], "first");
  EXPECT_EQ(json["plan"]["spines"], report.plan.tier.spines);
  EXPECT_EQ(json["workload"]["requests"], report.workload->requests);
}

}  // namespace
}  // namespace ballast::sim
