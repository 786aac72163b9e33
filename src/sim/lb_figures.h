// SPDX-License-Identifier: Apache-2.0
// The figures of dispatching, drawn from the flow-level model. After Spotlight's simulation, arXiv
// 1806.08455.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/figure.h"
#include "sim/flow_model.h"

namespace ballast::sim {

enum class FlowMetric { kThroughput, kUtilisation, kCompletion, kP99, kRefused };
// throughput, utilisation, completion, p99, refused.
std::optional<FlowMetric> find_flow_metric(std::string_view name);

struct LbFigureOptions {
  size_t instances = 100;
  double capacity = 125e6;  // bytes a second, mean of the instances
  double spread = 4;        // the largest capacity in units of the least, the others between
  FlowModelOptions model = {
      .flow_rate = 2.5e6, .sizes = *FlowSizes::of_law("web-search", 1e6), .background = {0.9}};
  std::optional<double> load = {};  // else the figure's own
  Nanos measured = 30 * kSecond;
  std::optional<FlowMetric> metric = {};  // else the figure's own
  Runs runs = {};                         // arrivals, sizes and other load of their own
};

std::span<const FigureKind<LbFigureOptions>> lb_figures();

Figure load_figure(const LbFigureOptions& options);
Figure m_figure(const LbFigureOptions& options);
Figure interval_figure(const LbFigureOptions& options);
Figure heterogeneity_figure(const LbFigureOptions& options);
Figure convergence_figure(const LbFigureOptions& options);
Figure flowsize_figure(const LbFigureOptions& options);
Figure lost_balancer_figure(const LbFigureOptions& options);

std::vector<Setting> settings_of(const LbFigureOptions& options);
// Geometrically from the least to the largest.
std::vector<double> capacities_of(const LbFigureOptions& options);
// The options' model with its capacities and load.
FlowModelOptions model_of(const LbFigureOptions& options, double load = 0.9);
// Measured once the largest flow that is there at the start has had time to end.
Timing timing_of(const LbFigureOptions& options);
uint64_t model_seed(const LbFigureOptions& options, size_t run);

// What the figures are made of: one case of the model for each series and x.
struct FlowCase {
  FlowModelOptions model;
  Timing timing;
};
using CaseOf = std::function<FlowCase(size_t series, size_t x)>;

// Means over the runs.
struct FlowMeans {
  double throughput = 0;
  double completion = 0;
};
// Fills the figure's cells with the metric and names it on the y axis; gives what the notes
// compare, by series and x.
std::vector<std::vector<FlowMeans>> fill_flows(Figure& figure, const LbFigureOptions& options,
                                               FlowMetric metric, const CaseOf& case_of);

}  // namespace ballast::sim
