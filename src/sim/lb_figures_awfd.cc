// SPDX-License-Identifier: Apache-2.0
// The figures of AWFD's own settings: m, the poll interval, and how soon it follows a change.
#include <fmt/format.h>

#include <algorithm>

#include "sim/lb_figures.h"

namespace ballast::sim {
namespace {

constexpr size_t kChanges = 6;
constexpr Nanos kBetweenChanges = 10 * kSecond;
constexpr Nanos kSlot = 200 * kMillisecond;
constexpr size_t kSlotsBefore = 3;
constexpr size_t kSlots = 28;
constexpr double kRecovered = 0.95;
constexpr double kConvergenceLoad = 0.7;  // so that the ideal finds room at once

// One line of a figure: what differs from the options.
struct Line {
  const char* name;
  Dispatching dispatching = Dispatching::kAwfd;
  std::optional<uint32_t> m = {};
  std::optional<Nanos> interval = {};
  std::optional<double> missed = {};
  std::optional<size_t> balancers = {};
};

FlowModelOptions model_of_line(FlowModelOptions model, const Line& line) {
  model.dispatching = line.dispatching;
  model.m = line.m.value_or(model.m);
  model.interval = line.interval.value_or(model.interval);
  model.missed = line.missed.value_or(model.missed);
  model.balancers = line.balancers.value_or(model.balancers);
  return model;
}

std::string duration_name(Nanos duration) {
  if (duration % kSecond == 0) return fmt::format("{} s", duration / kSecond);
  return fmt::format("{} ms", duration / kMillisecond);
}

void add_lines(Figure& figure, std::span<const Line> lines) {
  for (const Line& line : lines) figure.series.push_back({line.name});
}

// Where flows end soonest and latest, for each of the first series, those that `means` has.
void add_best(Figure& figure, const std::vector<std::vector<FlowMeans>>& means) {
  for (size_t s = 0; s < means.size(); ++s) {
    const auto best =
        std::min_element(means[s].begin(), means[s].end(),
                         [](const auto& a, const auto& b) { return a.completion < b.completion; });
    const auto worst =
        std::max_element(means[s].begin(), means[s].end(),
                         [](const auto& a, const auto& b) { return a.completion < b.completion; });
    figure.notes.push_back(fmt::format(
        "{}: flows end soonest at {} (mean {:.0f} ms), latest at {} ({:.0f} ms).",
        figure.series[s].name, figure.x[static_cast<size_t>(best - means[s].begin())],
        best->completion / kMillisecond, figure.x[static_cast<size_t>(worst - means[s].begin())],
        worst->completion / kMillisecond));
  }
}

// Half of the instances are busy with other load. A change moves it in every second pair of them,
// so that what is free in all stays about the same.
void set_busy(FlowModel& model, double most, size_t change) {
  for (size_t i = 0; i < model.instances().size(); ++i) {
    const size_t moved = i / 2 % 2 == 0 ? 0 : change;
    model.set_background(i, (i + moved) % 2 == 0 ? 0 : most);
  }
}

// New flows that begin at full rate, in slots about a change of other load, in per cent, the mean
// of several changes.
std::vector<double> convergence_line(const FlowModelOptions& options) {
  FlowModel model(options);
  std::vector<double> begun(kSlots);
  std::vector<double> arrived(kSlots);
  set_busy(model, options.background.most, 0);
  model.run(kBetweenChanges);
  for (size_t change = 1; change <= kChanges; ++change) {
    const Nanos start = model.now() + kBetweenChanges;
    model.run(start - static_cast<Nanos>(kSlotsBefore) * kSlot);
    model.take_counts();
    for (size_t slot = 0; slot < kSlots; ++slot) {
      if (slot == kSlotsBefore) set_busy(model, options.background.most, change);
      model.run(model.now() + kSlot);
      const FlowCounts counts = model.take_counts();
      begun[slot] += static_cast<double>(counts.full_rate);
      arrived[slot] += static_cast<double>(counts.arrived);
    }
  }
  for (size_t slot = 0; slot < kSlots; ++slot) begun[slot] *= 100 / std::max(1.0, arrived[slot]);
  return begun;
}

void add_recovery(Figure& figure, const Series& ideal) {
  for (const Series& series : figure.series) {
    if (series.name == ideal.name) continue;
    size_t slot = kSlots;
    while (slot > kSlotsBefore &&
           series.cells[slot - 1].mean >= kRecovered * ideal.cells[slot - 1].mean)
      --slot;
    const double after = static_cast<double>(slot - kSlotsBefore) *
                         (static_cast<double>(kSlot) / static_cast<double>(kSecond));
    figure.notes.push_back(
        slot == kSlots
            ? fmt::format("{}: not within 5 % of the ideal at the end of the time shown.",
                          series.name)
            : fmt::format("{}: within 5 % of the ideal for good from {:g} s after the change.",
                          series.name, after));
  }
}

}  // namespace

Figure m_figure(const LbFigureOptions& options) {
  static constexpr uint32_t kM[] = {0, 1, 2, 4, 8, 16, 32, 64, 256, 1024};
  static constexpr Line kLines[] = {{.name = "polls each 20 ms", .interval = 20 * kMillisecond},
                                    {.name = "each 100 ms", .interval = 100 * kMillisecond},
                                    {.name = "each 500 ms", .interval = 500 * kMillisecond},
                                    {.name = "each 2 s", .interval = 2 * kSecond},
                                    {.name = "ideal", .dispatching = Dispatching::kIdeal}};
  Figure figure{.name = "m", .title = "AWFD by its number of weights", .x_title = "m"};
  for (const uint32_t m : kM) figure.x.push_back(fmt::format("{}", m));
  add_lines(figure, kLines);
  const auto means = fill_flows(figure, options, options.metric.value_or(FlowMetric::kCompletion),
                                [&](size_t series, size_t x) -> FlowCase {
                                  FlowModelOptions model =
                                      model_of_line(model_of(options), kLines[series]);
                                  model.m = kM[x];
                                  return {std::move(model), timing_of(options)};
                                });
  add_best(figure, {means.begin(), means.end() - 1});
  figure.notes.emplace_back("m = 0 is ECMP, m = 1 least congested first.");
  return figure;
}

Figure interval_figure(const LbFigureOptions& options) {
  static constexpr Nanos kIntervals[] = {
      10 * kMillisecond,  20 * kMillisecond,  50 * kMillisecond, 100 * kMillisecond,
      200 * kMillisecond, 500 * kMillisecond, kSecond,           2 * kSecond,
      5 * kSecond};
  static constexpr Line kLines[] = {
      {.name = "AWFD"},
      {.name = "AWFD, m 4", .m = 4},
      {.name = "AWFD, m 256", .m = 256},
      {.name = "AWFD, half the polls missed", .missed = 0.5},
      {.name = "AWFD, one balancer", .balancers = 1},
      {.name = "least congested", .dispatching = Dispatching::kLeastCongested},
      {.name = "WCMP", .dispatching = Dispatching::kWcmp},
      {.name = "ideal", .dispatching = Dispatching::kIdeal}};
  Figure figure{
      .name = "interval", .title = "Dispatching by the poll interval", .x_title = "interval"};
  for (const Nanos interval : kIntervals) figure.x.push_back(duration_name(interval));
  add_lines(figure, kLines);
  const auto means = fill_flows(figure, options, options.metric.value_or(FlowMetric::kCompletion),
                                [&](size_t series, size_t x) -> FlowCase {
                                  FlowModelOptions model =
                                      model_of_line(model_of(options), kLines[series]);
                                  model.interval = kIntervals[x];
                                  return {std::move(model), timing_of(options)};
                                });
  add_best(figure, {means.begin(), means.begin() + 6});
  return figure;
}

Figure convergence_figure(const LbFigureOptions& options) {
  static constexpr Line kLines[] = {
      {.name = "ideal", .dispatching = Dispatching::kIdeal},
      {.name = "AWFD"},
      {.name = "AWFD, each 500 ms", .interval = 500 * kMillisecond},
      {.name = "AWFD, each 2 s", .interval = 2 * kSecond},
      {.name = "AWFD, half the polls missed", .missed = 0.5},
      {.name = "AWFD, 32 balancers", .balancers = 32},
      {.name = "least congested", .dispatching = Dispatching::kLeastCongested},
      {.name = "WCMP", .dispatching = Dispatching::kWcmp}};
  Figure figure{.name = "convergence",
                .title = "New flows about a change of other load at 0 s",
                .x_title = "from, s",
                .y_title = "new flows that begin at full rate, %"};
  for (size_t slot = 0; slot < kSlots; ++slot) {
    const double start = (static_cast<double>(slot) - static_cast<double>(kSlotsBefore)) *
                         (static_cast<double>(kSlot) / static_cast<double>(kSecond));
    figure.x.push_back(fmt::format("{:g}", start));
  }
  add_lines(figure, kLines);
  fill_lines(figure, options.runs, [&](size_t series, size_t run) {
    FlowModelOptions model = model_of_line(model_of(options, kConvergenceLoad), kLines[series]);
    model.background.period = 0;
    model.seed = model_seed(options, run);
    return convergence_line(model);
  });
  const Series ideal = figure.series.front();
  add_recovery(figure, ideal);
  figure.notes.push_back(fmt::format(
      "Other load takes {:g} % of every second instance and moves to another in half of them; each "
      "slot of {} ms is the mean of {} changes; load {:g}.",
      options.model.background.most * 100, kSlot / kMillisecond, kChanges,
      model_of(options, kConvergenceLoad).load));
  return figure;
}

}  // namespace ballast::sim
