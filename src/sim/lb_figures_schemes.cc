// SPDX-License-Identifier: Apache-2.0
// The figures that compare all schemes: by load, by the instances' unlikeness, by the flows' sizes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/lb_figures.h"

namespace ballast::sim {
namespace {

constexpr Dispatching kSchemes[] = {
    Dispatching::kEcmp,       Dispatching::kWcmp,           Dispatching::kLeastConnections,
    Dispatching::kTwoChoices, Dispatching::kLeastCongested, Dispatching::kAwfd,
    Dispatching::kIdeal};

constexpr double kClearlyBetter = 0.2;
constexpr double kNear = 0.05;

using Means = std::vector<std::vector<FlowMeans>>;  // by scheme (as in kSchemes) and x

const std::vector<FlowMeans>& means_of(const Means& means, Dispatching scheme) {
  return means[static_cast<size_t>(std::find(std::begin(kSchemes), std::end(kSchemes), scheme) -
                                   std::begin(kSchemes))];
}

// "at 0.5, 0.7", "nowhere" or "everywhere": where `holds` of x does.
std::string where(const Figure& figure, const std::function<bool(size_t x)>& holds) {
  std::vector<std::string> at;
  for (size_t x = 0; x < figure.x.size(); ++x) {
    if (holds(x)) at.push_back(figure.x[x]);
  }
  if (at.empty()) return "nowhere";
  if (at.size() == figure.x.size()) return "everywhere";
  return fmt::format("at {}", fmt::join(at, "; "));
}

// Which of the paper's claims hold at which x, by the numbers just measured.
void add_comparison(Figure& figure, const Means& means) {
  const auto& awfd = means_of(means, Dispatching::kAwfd);
  for (const Dispatching rival : {Dispatching::kEcmp, Dispatching::kWcmp}) {
    const auto& other = means_of(means, rival);
    figure.notes.push_back(fmt::format(
        "AWFD at least 20 % better than {}: in throughput {}; in mean completion time {}.",
        dispatching_name(rival),
        where(figure,
              [&](size_t x) {
                return awfd[x].throughput >= (1 + kClearlyBetter) * other[x].throughput;
              }),
        where(figure, [&](size_t x) {
          return awfd[x].completion <= (1 - kClearlyBetter) * other[x].completion;
        })));
  }
  const auto& ideal = means_of(means, Dispatching::kIdeal);
  figure.notes.push_back(fmt::format(
      "AWFD within 5 % of the ideal: in throughput {}; in mean completion time {}.",
      where(figure,
            [&](size_t x) { return awfd[x].throughput >= (1 - kNear) * ideal[x].throughput; }),
      where(figure,
            [&](size_t x) { return awfd[x].completion <= (1 + kNear) * ideal[x].completion; })));
  size_t most = 0;
  const auto& wcmp = means_of(means, Dispatching::kWcmp);
  for (size_t x = 1; x < figure.x.size(); ++x) {
    if (awfd[x].throughput * wcmp[most].throughput > awfd[most].throughput * wcmp[x].throughput)
      most = x;
  }
  figure.notes.push_back(fmt::format(
      "AWFD's largest lead over WCMP in throughput: {:.1f} %, at {}, where a flow takes {:.2f} "
      "times as long under WCMP.",
      100 * (awfd[most].throughput / wcmp[most].throughput - 1), figure.x[most],
      wcmp[most].completion / awfd[most].completion));
  figure.notes.emplace_back(
      "Completion times are of flows that were accepted and ended: a scheme that has flows refused "
      "seems quicker than it is.");
}

// A column for each scheme; `change` makes the case of x from the options.
Figure scheme_figure(const LbFigureOptions& options, Figure figure, FlowMetric own_metric,
                     const std::function<void(LbFigureOptions& of, size_t x)>& change) {
  for (const Dispatching scheme : kSchemes)
    figure.series.push_back({std::string(dispatching_name(scheme))});
  const Means means = fill_flows(figure, options, options.metric.value_or(own_metric),
                                 [&](size_t series, size_t x) -> FlowCase {
                                   LbFigureOptions of = options;
                                   change(of, x);
                                   of.model.dispatching = kSchemes[series];
                                   return {model_of(of), timing_of(of)};
                                 });
  add_comparison(figure, means);
  return figure;
}

struct Unlike {
  double spread;
  double most;
  bool two_valued;
};

std::string unlike_name(const Unlike& unlike) {
  std::string name = fmt::format("{:g}", unlike.spread);
  if (unlike.most > 0)
    name += fmt::format(", {}{:g} %", unlike.two_valued ? "0|" : "", unlike.most * 100);
  return name;
}

// Flows' sizes: a law of the options' mean, or their own law with a mean in its units.
struct Sizes {
  const char* law;  // null: the options' own
  double factor;
};
constexpr Sizes kSizes[] = {{"fixed", 1},  {"exponential", 1}, {"lognormal", 1}, {"web-search", 1},
                            {"pareto", 1}, {"data-mining", 1}, {nullptr, 0.1},   {nullptr, 0.3},
                            {nullptr, 1},  {nullptr, 3},       {nullptr, 10}};

std::string sizes_name(const LbFigureOptions& options, const Sizes& sizes) {
  if (sizes.law != nullptr) return sizes.law;
  return fmt::format("{:g} MB", options.model.sizes->mean() * sizes.factor / 1e6);
}

void set_sizes(LbFigureOptions& of, const Sizes& sizes) {
  FlowModelOptions& model = of.model;
  const double mean = model.sizes->mean() * sizes.factor;
  model.sizes =
      sizes.law != nullptr ? *FlowSizes::of_law(sizes.law, mean) : model.sizes->with_mean(mean);
  if (sizes.factor < 1) of.measured /= 2;
}

}  // namespace

Figure load_figure(const LbFigureOptions& options) {
  static constexpr double kLoads[] = {0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1, 1.1};
  Figure figure{.name = "load", .title = "Dispatching schemes by load", .x_title = "load"};
  for (const double load : kLoads) figure.x.push_back(fmt::format("{:g}", load));
  return scheme_figure(options, std::move(figure), FlowMetric::kThroughput,
                       [](LbFigureOptions& of, size_t x) { of.load = kLoads[x]; });
}

Figure heterogeneity_figure(const LbFigureOptions& options) {
  static constexpr Unlike kUnlike[] = {{1, 0, false},    {4, 0, false},   {16, 0, false},
                                       {1, 0.5, false},  {4, 0.5, false}, {4, 0.9, false},
                                       {16, 0.9, false}, {1, 0.9, true},  {4, 0.9, true}};
  Figure figure{.name = "heterogeneity",
                .title = "Dispatching schemes by how unlike the instances are",
                .x_title = "capacities, other load"};
  for (const Unlike& unlike : kUnlike) figure.x.push_back(unlike_name(unlike));
  figure = scheme_figure(options, std::move(figure), FlowMetric::kThroughput,
                         [](LbFigureOptions& of, size_t x) {
                           of.spread = kUnlike[x].spread;
                           of.model.background.most = kUnlike[x].most;
                           of.model.background.two_valued = kUnlike[x].two_valued;
                         });
  figure.notes.push_back(fmt::format(
      "\"4, 90 %\": the largest capacity is 4 times the least, and other load takes from none to "
      "90 % of each instance; \"0|90 %\": either none or 90 %. All at load {:g} of what it leaves.",
      model_of(options).load));
  return figure;
}

Figure flowsize_figure(const LbFigureOptions& options) {
  Figure figure{.name = "flowsize",
                .title = "Dispatching schemes by the sizes of the flows",
                .x_title = "sizes"};
  for (const Sizes& sizes : kSizes) figure.x.push_back(sizes_name(options, sizes));
  figure = scheme_figure(options, std::move(figure), FlowMetric::kCompletion,
                         [](LbFigureOptions& of, size_t x) { set_sizes(of, kSizes[x]); });
  figure.notes.push_back(fmt::format(
      "Laws: of mean {:g} MB. Means: of the law {}. At full rate a flow of {:g} MB takes {:.0f} "
      "ms; the poll interval is {} ms; the load {:g}.",
      options.model.sizes->mean() / 1e6, options.model.sizes->name(),
      options.model.sizes->mean() / 1e6,
      1000 * options.model.sizes->mean() / options.model.flow_rate,
      options.model.interval / kMillisecond, model_of(options).load));
  return figure;
}

}  // namespace ballast::sim
