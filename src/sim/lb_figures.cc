// SPDX-License-Identifier: Apache-2.0
#include "sim/lb_figures.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "balance/hash.h"

namespace ballast::sim {
namespace {

constexpr FigureKind<LbFigureOptions> kKinds[] = {
    {"load", "all schemes by the load", load_figure},
    {"m", "AWFD by its number of weights m and the poll interval", m_figure},
    {"interval", "by the poll interval: AWFD, least congested first, missed polls",
     interval_figure},
    {"heterogeneity", "all schemes by how unlike the instances and their other load are",
     heterogeneity_figure},
    {"convergence", "new flows after a change of all other load, over time", convergence_figure},
    {"flowsize", "all schemes by the flows' sizes and how long they last", flowsize_figure},
    {"lost-balancer", "connections kept when one of two balancers is lost", lost_balancer_figure},
};

struct MetricKind {
  const char* name;
  const char* title;
  double (*of)(const FlowCounts& counts);
};
constexpr double kGigabit = 8e-9;  // of a byte

// By FlowMetric.
constexpr MetricKind kMetrics[] = {
    {"throughput", "aggregate throughput, Gbit/s",
     [](const FlowCounts& counts) { return counts.throughput() * kGigabit; }},
    {"utilisation", "share in use of what other load leaves, %",
     [](const FlowCounts& counts) { return counts.utilisation() * 100; }},
    {"completion", "mean completion time of a flow, ms",
     [](const FlowCounts& counts) { return counts.completion.mean() / kMillisecond; }},
    {"p99", "99th percentile of flows' completion times, ms",
     [](const FlowCounts& counts) {
       return static_cast<double>(counts.completion.quantile(0.99)) / kMillisecond;
     }},
    {"refused", "flows refused, %",
     [](const FlowCounts& counts) { return counts.refused_share() * 100; }},
};

FlowCounts measure(const FlowCase& of) {
  FlowModel model(of.model);
  model.run(of.timing.warm_up);
  model.take_counts();
  model.run(of.timing.warm_up + of.timing.measured);
  return model.take_counts();
}

}  // namespace

std::span<const FigureKind<LbFigureOptions>> lb_figures() { return kKinds; }

std::optional<FlowMetric> find_flow_metric(std::string_view name) {
  for (size_t i = 0; i < std::size(kMetrics); ++i) {
    if (name == kMetrics[i].name) return static_cast<FlowMetric>(i);
  }
  return {};
}

std::vector<double> capacities_of(const LbFigureOptions& options) {
  std::vector<double> capacities;
  double sum = 0;
  const double steps = std::max(1.0, static_cast<double>(options.instances) - 1);
  for (size_t i = 0; i < options.instances; ++i) {
    capacities.push_back(std::pow(options.spread, static_cast<double>(i) / steps));
    sum += capacities.back();
  }
  const double unit = options.capacity * static_cast<double>(options.instances) / sum;
  for (double& capacity : capacities) capacity *= unit;
  return capacities;
}

Timing timing_of(const LbFigureOptions& options) {
  constexpr double kLeast = 10;     // s, some draws of other load
  constexpr double kMargin = 1.25;  // few flows have their full rate all the time
  const double longest = kMargin * options.model.sizes->largest() / options.model.flow_rate;
  return {static_cast<Nanos>(std::max(kLeast, longest) * kSecond), options.measured};
}

FlowModelOptions model_of(const LbFigureOptions& options, double load) {
  FlowModelOptions model = options.model;
  model.load = options.load.value_or(load);
  model.capacities = capacities_of(options);
  return model;
}

uint64_t model_seed(const LbFigureOptions& options, size_t run) {
  return balance::mix(options.runs.seed + run, 5);
}

std::vector<std::vector<FlowMeans>> fill_flows(Figure& figure, const LbFigureOptions& options,
                                               FlowMetric metric, const CaseOf& case_of) {
  const MetricKind& kind = kMetrics[static_cast<size_t>(metric)];
  figure.y_title = kind.title;
  const size_t width = figure.x.size();
  const size_t runs = options.runs.count;
  std::vector<FlowMeans> all(figure.series.size() * width * runs);
  fill_cells(figure, options.runs, [&](size_t series, size_t x, size_t run) {
    FlowCase of = case_of(series, x);
    of.model.seed = model_seed(options, run);
    const FlowCounts counts = measure(of);
    all[(series * width + x) * runs + run] = {counts.throughput(), counts.completion.mean()};
    return kind.of(counts);
  });
  std::vector<std::vector<FlowMeans>> means(figure.series.size(), std::vector<FlowMeans>(width));
  for (size_t i = 0; i < all.size(); ++i) {
    FlowMeans& mean = means[i / runs / width][i / runs % width];
    mean.throughput += all[i].throughput / static_cast<double>(runs);
    mean.completion += all[i].completion / static_cast<double>(runs);
  }
  return means;
}

std::vector<Setting> settings_of(const LbFigureOptions& options) {
  const FlowModelOptions& model = options.model;
  std::vector<Setting> settings{
      {"instances", uint64_t{options.instances}},
      {"capacity_bytes_per_second", options.capacity},
      {"capacity_spread", options.spread},
      {"flow_rate_bytes_per_second", model.flow_rate},
      {"flow_size_law", model.sizes->name()},
      {"flow_size_bytes", model.sizes->mean()},
      {"other_load_most", model.background.most},
      {"other_load_period_ns", static_cast<uint64_t>(model.background.period)},
      {"accepted", model.accepted},
      {"m", uint64_t{model.m}},
      {"balancers", uint64_t{model.balancers}},
      {"interval_ns", static_cast<uint64_t>(model.interval)},
      {"missed_polls", model.missed},
      {"warm_up_ns", static_cast<uint64_t>(timing_of(options).warm_up)},
      {"measured_ns", static_cast<uint64_t>(options.measured)},
      {"runs", uint64_t{options.runs.count}}};
  // Else each figure's own, which its title says.
  if (options.load) settings.emplace_back("load", *options.load);
  return settings;
}

}  // namespace ballast::sim
