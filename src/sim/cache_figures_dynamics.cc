// SPDX-License-Identifier: Apache-2.0
// The figures that need time: failure and remapping, stability of the queues, stale loads.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sim/cache_figures.h"
#include "sim/fluid.h"

namespace ballast::sim {
namespace {

constexpr size_t kFailureSeconds = 20;
constexpr size_t kFailsAfter = 5;
constexpr size_t kRemappedAfter = 10;
constexpr size_t kReturnsAfter = 15;

std::vector<std::string> seconds(size_t count) {
  std::vector<std::string> out;
  for (size_t i = 1; i <= count; ++i) out.push_back(fmt::format("{}", i));
  return out;
}

// Answered requests in each second, as a share of those sent.
std::vector<double> failure_line(const CacheFigureOptions& options, bool cross_spines, size_t run) {
  Scenario scenario = scenario_of_run(options, run);
  const Layout whole = make_layout(scenario);
  for (size_t i = 0; i < std::max<size_t>(1, scenario.spines / 8); ++i) scenario.dead.push_back(i);
  const Layout remapped = make_layout(scenario);
  QueueingOptions queueing = queueing_of_run(options, run);
  queueing.rate = fluid_bound(whole).rate / 2;
  queueing.cross_spines = cross_spines;
  QueueingModel model(whole, queueing);
  const auto set_dead = [&](bool dead) {
    for (const size_t spine : scenario.dead) model.set_dead(spine, dead);
  };
  std::vector<double> line;
  for (size_t second = 0; second < kFailureSeconds; ++second) {
    if (second == kFailsAfter) set_dead(true);
    if (second == kRemappedAfter) {
      model.change_layout(remapped);
      model.set_cross_dead(false);
    }
    if (second == kReturnsAfter) {
      set_dead(false);
      model.change_layout(whole);
    }
    model.run(static_cast<Nanos>(second + 1) * kSecond);
    line.push_back(100 * (1 - model.take_counts().loss()));
  }
  return line;
}

}  // namespace

Figure failure_figure(const CacheFigureOptions& options) {
  Figure figure{.name = "failure",
                .title = "An eighth of the spines fails, " + load_text(options.scenario),
                .x_title = "seconds",
                .y_title = "answered, % of the requests sent",
                .x = seconds(kFailureSeconds)};
  figure.series = {{"paper's network"}, {"Ballast"}};
  fill_lines(figure, options.runs,
             [&](size_t s, size_t run) { return failure_line(options, s == 0, run); });
  const auto lowest = [&](size_t s) {
    double least = 100;
    for (size_t i = kFailsAfter; i < kRemappedAfter; ++i)
      least = std::min(least, figure.series[s].cells[i].mean);
    return least;
  };
  figure.notes = {
      fmt::format("sent at half of the fluid bound; {} of {} spines dead after {} s, their objects "
                  "and routes remapped after {} s, back after {} s",
                  std::max<size_t>(1, options.scenario.spines / 8), options.scenario.spines,
                  kFailsAfter, kRemappedAfter, kReturnsAfter),
      fmt::format(
          "paper's network: spines are switches that every request crosses, so an eighth is "
          "lost (x0.875 in the paper, x{:.3f} here at the lowest, where reads of the dead "
          "spines' objects that their leaf would answer are lost besides)",
          lowest(0) / 100),
      fmt::format(
          "Ballast: only reads that a spine answers go there, so at the lowest {:.1f} % are "
          "answered",
          lowest(1)),
      "routers here do not notice a dead spine by themselves, and copies are filled at once: the "
      "loads alone do not keep reads away from a spine that answers nothing"};
  return figure;
}

Figure warmup_figure(const CacheFigureOptions& options) {
  constexpr size_t kSeconds = 20;
  constexpr size_t kShiftAfter = 10;
  Figure figure{
      .name = "warmup",
      .title = "From empty nodes on; other objects turn hot, " + load_text(options.scenario),
      .x_title = "seconds",
      .y_title = "% of the requests",
      .x = seconds(kSeconds)};
  figure.series = {{"answered by copies"}, {"lost"}, {"answered by copies, hottest held"}};
  fill_lines(figure, options.runs, [&](size_t s, size_t run) {
    const Scenario scenario = scenario_of_run(options, run);
    const Layout hottest = make_layout(scenario);
    const Layout layout = s == 2 ? hottest : make_candidates(scenario);
    QueueingOptions queueing = queueing_of_run(options, run);
    queueing.rate = fluid_bound(hottest).rate / 2;
    if (s < 2) queueing.admit_objects = scenario.objects_per_node;
    QueueingModel model(layout, queueing);
    std::vector<double> line;
    for (size_t second = 0; second < kSeconds; ++second) {
      if (second == kShiftAfter && s < 2) model.shift(layout.cached.size() / 2);
      model.run(static_cast<Nanos>(second + 1) * kSecond);
      const Counts counts = model.take_counts();
      const auto requests = static_cast<double>(counts.requests);
      line.push_back(100 *
                     (s == 1 ? counts.loss() : static_cast<double>(counts.at_nodes) / requests));
    }
    return line;
  });
  figure.notes = {
      fmt::format("sent at half of the fluid bound, {:.0f} requests a second in the first run",
                  fluid_bound(make_layout(scenario_of_run(options, 0))).rate / 2 *
                      options.queueing.requests_per_unit),
      fmt::format("nodes hold what the product's admission picks; routers send one in {} of the "
                  "reads of objects without a copy to a node",
                  options.queueing.sample),
      fmt::format("after {} s the requests go to other objects, as skewed as before", kShiftAfter),
      "hottest held: for comparison, what copies answer when each node holds the hottest of its "
      "objects from the start"};
  return figure;
}

Figure stability_figure(const CacheFigureOptions& options) {
  constexpr size_t kSeconds = 10;
  Figure figure{.name = "stability",
                .title = "Queues at one rate, " + load_text(options.scenario),
                .x_title = "seconds",
                .y_title = "requests waiting at the fullest node",
                .x = seconds(kSeconds)};
  figure.series = {{"two choices"}, {"random split"}};
  const auto bounds = [&](size_t run) {
    Scenario scenario = scenario_of_run(options, run);
    const double two = fluid_bound(make_layout(scenario)).node_rate;
    scenario.scheme = Scheme::kRandomSplit;
    return std::pair(two, fluid_bound(make_layout(scenario)).node_rate);
  };
  fill_lines(figure, options.runs, [&](size_t s, size_t run) {
    const auto [two, random] = bounds(run);
    Scenario scenario = scenario_of_run(options, run);
    if (s == 1) scenario.scheme = Scheme::kRandomSplit;
    const Layout layout = make_layout(scenario);
    QueueingOptions queueing = queueing_of_run(options, run);
    queueing.rate = (two + random) / 2;
    queueing.queue = 1e15;
    QueueingModel model(layout, queueing);
    std::vector<double> line;
    for (size_t second = 1; second <= kSeconds; ++second) {
      model.run(static_cast<Nanos>(second) * kSecond);
      line.push_back(std::max(0.0, model.largest_backlog()));
    }
    return line;
  });
  const auto [two, random] = bounds(0);
  figure.notes = {
      fmt::format("rate: halfway between the nodes' bounds of the two, in the first run "
                  "{:.0f} and {:.0f}; queues without limit",
                  two, random),
      "random split: the hottest object's halves meet other objects at its nodes, and "
      "nothing moves those away; two choices does"};
  if (random > two * 0.99)
    figure.notes.emplace_back("the bounds are alike with these settings: both are stable or none");
  return figure;
}

Figure telemetry_figure(const CacheFigureOptions& options) {
  constexpr Nanos kIntervals[] = {0, kMillisecond, 10 * kMillisecond, 100 * kMillisecond, kSecond};
  constexpr size_t kRouters[] = {1, 32, 1000};
  Figure figure{.name = "telemetry",
                .title = "Sustained rate by the age of loads, " + load_text(options.scenario),
                .x_title = "least time between a node's reports to one router",
                .y_title = "sustained, % of the fluid bound",
                .x = {"each reply", "1 ms", "10 ms", "100 ms", "1 s"}};
  for (const bool own_sent : {true, false}) {
    for (const size_t routers : kRouters) {
      figure.series.push_back({fmt::format("{} router{}, {}", routers, routers == 1 ? "" : "s",
                                           own_sent ? "own sent added" : "reports only")});
    }
  }
  CacheFigureOptions coarse = options;
  coarse.timing.measured = std::max<Nanos>(1, options.timing.measured / 2);
  fill_cells(figure, coarse.runs, [&](size_t s, size_t x, size_t run) {
    CacheFigureOptions cell = coarse;
    cell.queueing.telemetry = kIntervals[x];
    cell.queueing.routers = kRouters[s % std::size(kRouters)];
    cell.queueing.choice.own_sent = s < std::size(kRouters);
    const Layout layout = make_layout(scenario_of_run(cell, run));
    const double bound = fluid_bound(layout).rate;
    return 100 * sustained_near(layout, bound, cell, run) / bound;
  });
  figure.notes = {
      fmt::format("nodes' queues hold {:g} requests, {:.3g} ms of work: a herd that lasts longer "
                  "than that loses some",
                  options.queueing.queue,
                  options.queueing.queue / options.queueing.requests_per_unit * 1000 /
                      options.scenario.capacity_of_node()),
      "loads are requests in the last second, so all routers that hear of a less loaded node send "
      "there until the next report; each adds only what it sent itself",
      "sustained: under 1 % lost in all and at each node and server"};
  return figure;
}

}  // namespace ballast::sim
