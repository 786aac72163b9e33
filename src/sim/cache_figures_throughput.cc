// SPDX-License-Identifier: Apache-2.0
// The figures whose y is a throughput: by skew, cache size, scale, share of writes; and the theory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/cache_figures.h"
#include "sim/fluid.h"

namespace ballast::sim {
namespace {

constexpr const char* kThroughput = "throughput, in units of one server's";
constexpr Scheme kCompared[] = {Scheme::kNoCache, Scheme::kPartition, Scheme::kReplication,
                                Scheme::kDistCache};
constexpr const char* kSustainedNote =
    "fluid: no node or server above its capacity, requests divisible. sustained: the queueing "
    "model, under 1 % lost in all and at each node and server; Poisson arrivals and finite queues "
    "put it a few percent to either side of the fluid bound";
constexpr const char* kAdmissionNote =
    "admission: nodes start empty and hold what the product's admission picks from what they are "
    "asked. An object that is read at one node is not counted at the other, so fewer objects are "
    "held twice than with the hottest of each node's, which the other columns have";
constexpr const char* kCapacityNote =
    "a node's capacity counts the requests it answers; reads of objects without a copy go "
    "straight to their server and pass no node";
constexpr const char* kReplicationNote =
    "CacheReplication: each spine holds the same hottest objects, the leaves the next ones of "
    "their rack; all schemes have the same nodes and room";
constexpr const char* kInvalidNote =
    "sustained lies below the fluid bound: while a write is under way no copy is good, and the "
    "object's reads go on to its server, where those of each router share reads; the fluid model "
    "leaves that out";
constexpr const char* kWritesNote =
    "writes are spread like the reads. With any skew the hottest object's server, which does all "
    "its writes, binds every scheme soon: DistCache falls with 1/writes too, CacheReplication by "
    "its copies' number faster";

std::string percent(double share) { return fmt::format("{:.3g} %", share * 100); }

Series named(std::string name, bool plotted = true) { return {std::move(name), {}, plotted}; }

// One series of the fluid bound for each scheme compared, then one of DistCache sustained.
void add_compared(Figure& figure) {
  for (const Scheme scheme : kCompared) figure.series.push_back(named(scheme_name(scheme)));
  figure.series.push_back(named("DistCache sustained"));
}

Scheme scheme_at(size_t series) {
  return series < std::size(kCompared) ? kCompared[series] : Scheme::kDistCache;
}

double throughput(const Scenario& scenario, bool sustained, const CacheFigureOptions& options,
                  size_t run) {
  const Layout layout = make_layout(scenario);
  const double bound = fluid_bound(layout).rate;
  return sustained ? sustained_near(layout, bound, options, run) : bound;
}

// What sets the bound in words.
std::string binding(const Scenario& scenario) {
  const Layout layout = make_layout(scenario);
  const Bound bound = fluid_bound(layout);
  if (bound.server_bound()) {
    return fmt::format("set by server {}, which gets {} of the work", bound.server,
                       percent(1 / bound.server_rate));
  }
  return fmt::format(
      "set by {} object{} at {} nodes, the hottest of rank {}", bound.tight_objects.size(),
      bound.tight_objects.size() == 1 ? "" : "s", bound.tight_nodes.size(),
      bound.tight_objects.empty() ? 0 : layout.cached[bound.tight_objects.front()].rank + 1);
}

}  // namespace

Figure schemes_figure(const CacheFigureOptions& options) {
  Figure figure{
      .name = "schemes",
      .title = "Throughput of each scheme, " + load_text(options.scenario),
      .x_title = "scheme",
      .y_title = kThroughput,
      .series = {named("fluid bound"), named("sustained"), named("sustained, admission")}};
  for (const Scheme scheme : kSchemes) figure.x.emplace_back(scheme_name(scheme));
  fill_cells(figure, options.runs, [&](size_t s, size_t x, size_t run) {
    Scenario scenario = scenario_of_run(options, run);
    scenario.scheme = kSchemes[x];
    const double bound = fluid_bound(make_layout(scenario)).rate;
    return s == 2 ? sustained_admitted(scenario, bound, options, run)
                  : throughput(scenario, s == 1, options, run);
  });
  figure.notes = {kSustainedNote, kAdmissionNote, kCapacityNote, kReplicationNote};
  for (size_t x = 0; x < figure.x.size(); ++x) {
    Scenario scenario = scenario_of_run(options, 0);
    scenario.scheme = kSchemes[x];
    figure.notes.push_back(fmt::format("{}: {}", figure.x[x], binding(scenario)));
  }
  return figure;
}

Figure skew_figure(const CacheFigureOptions& options) {
  constexpr double kAlphas[] = {0, 0.9, 0.95, 0.99};
  Figure figure{.name = "skew",
                .title = options.scenario.writes > 0 ? fmt::format("Throughput by skew, {} writes",
                                                                   percent(options.scenario.writes))
                                                     : "Throughput by skew, read-only",
                .x_title = "Zipf parameter",
                .y_title = kThroughput,
                .x = {"uniform", "0.9", "0.95", "0.99"}};
  for (const Scheme scheme : kCompared) {
    figure.series.push_back(named(scheme_name(scheme), false));
    figure.series.push_back(named(std::string(scheme_name(scheme)) + " sustained"));
  }
  const auto scenario_at = [&](size_t x, Scheme scheme, size_t run) {
    Scenario scenario = scenario_of_run(options, run);
    scenario.alpha = kAlphas[x];
    scenario.scheme = scheme;
    return scenario;
  };
  fill_cells(figure, options.runs, [&](size_t s, size_t x, size_t run) {
    return throughput(scenario_at(x, kCompared[s / 2], run), s % 2 == 1, options, run);
  });
  figure.notes = {kSustainedNote, kCapacityNote, kReplicationNote};
  for (size_t x = 0; x < figure.x.size(); ++x) {
    const double share = figure.series[7].cells[x].mean / figure.series[6].cells[x].mean;
    figure.notes.push_back(fmt::format("{}: DistCache sustains {:.1f} % of its fluid bound, {}",
                                       figure.x[x], share * 100,
                                       binding(scenario_at(x, Scheme::kDistCache, 0))));
    if (x > 0 && figure.series[3].cells[x].mean > 0.9 * figure.series[7].cells[x].mean) {
      figure.notes.push_back(fmt::format(
          "{}: CachePartition is not clearly below DistCache: the servers bind both, and it holds "
          "twice as many objects, each once",
          figure.x[x]));
    }
  }
  return figure;
}

Figure cache_size_figure(const CacheFigureOptions& options) {
  constexpr double kParts[] = {0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1};
  Figure figure{.name = "cache-size",
                .title = "Throughput by cache size, " + load_text(options.scenario),
                .x_title = "objects held by all nodes",
                .y_title = kThroughput};
  const auto held = [&](size_t x) {
    const auto all = static_cast<double>(options.scenario.objects_per_node);
    return std::max<size_t>(1, static_cast<size_t>(std::lround(all * kParts[x])));
  };
  for (size_t x = 0; x < std::size(kParts); ++x)
    figure.x.push_back(fmt::format("{}", held(x) * options.scenario.nodes()));
  add_compared(figure);
  fill_cells(figure, options.runs, [&](size_t s, size_t x, size_t run) {
    Scenario scenario = scenario_of_run(options, run);
    scenario.objects_per_node = held(x);
    scenario.scheme = scheme_at(s);
    return throughput(scenario, s >= std::size(kCompared), options, run);
  });
  figure.notes = {kSustainedNote, kReplicationNote,
                  "DistCache with the most objects: " + binding(scenario_of_run(options, 0))};
  return figure;
}

Figure scale_figure(const CacheFigureOptions& options) {
  constexpr size_t kRacks[] = {8, 16, 32, 64, 128};
  Figure figure{.name = "scale",
                .title = "Throughput by scale, " + load_text(options.scenario),
                .x_title = fmt::format("racks of {} servers, as many spines",
                                       options.scenario.servers_per_rack),
                .y_title = kThroughput};
  for (const size_t racks : kRacks) figure.x.push_back(fmt::format("{}", racks));
  for (const Scheme scheme : kCompared) figure.series.push_back(named(scheme_name(scheme)));
  figure.series.push_back(named("DistCache, more copies"));
  figure.series.push_back(named("DistCache, more copies, sustained"));
  fill_cells(figure, options.runs, [&](size_t s, size_t x, size_t run) {
    Scenario scenario = scenario_of_run(options, run);
    scenario.racks = scenario.spines = kRacks[x];
    scenario.scheme = scheme_at(s);
    if (s >= std::size(kCompared))
      scenario.more_copies_at = fluid_bound(make_layout(scenario)).server_rate;
    return throughput(scenario, s == std::size(kCompared) + 1, options, run);
  });
  for (size_t s = 3; s < figure.series.size(); ++s) {
    std::vector<double> x;
    std::vector<double> y;
    for (size_t i = 0; i < std::size(kRacks); ++i) {
      x.push_back(static_cast<double>(kRacks[i]));
      y.push_back(figure.series[s].cells[i].mean);
    }
    figure.notes.push_back(
        fmt::format("{}: straight line with R² = {:.4f}", figure.series[s].name, linear_fit(x, y)));
  }
  figure.notes.push_back(
      "DistCache, two copies: level from where the hottest object fills its two nodes (the "
      "theorem's condition fails), however many nodes there are. More copies: objects that would "
      "give a copy more than a quarter of a node's capacity get further spines");
  figure.notes.insert(figure.notes.end(), {kSustainedNote, kReplicationNote});
  return figure;
}

Figure writes_figure(const CacheFigureOptions& options) {
  constexpr double kWrites[] = {0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1};
  Figure figure{
      .name = "writes",
      .title = fmt::format("Throughput by share of writes, Zipf {:g}", options.scenario.alpha),
      .x_title = "share of writes",
      .y_title = kThroughput};
  for (const double writes : kWrites) figure.x.push_back(percent(writes));
  add_compared(figure);
  const auto scenario_at = [&](size_t x, size_t run) {
    Scenario scenario = scenario_of_run(options, run);
    scenario.writes = kWrites[x];
    return scenario;
  };
  fill_cells(figure, options.runs, [&](size_t s, size_t x, size_t run) {
    Scenario scenario = scenario_at(x, run);
    scenario.scheme = scheme_at(s);
    return throughput(scenario, s >= std::size(kCompared), options, run);
  });
  figure.notes = {
      fmt::format("a write to an object with c copies costs its server 1 + {:g}·c requests (both "
                  "phases, reading again), and each copy's node {:g}",
                  options.scenario.cost.server_per_copy, options.scenario.cost.node_per_copy),
      kWritesNote, kInvalidNote, "DistCache at " + figure.x[3] + ": " + binding(scenario_at(3, 0)),
      kSustainedNote};
  return figure;
}

Figure theory_figure(const CacheFigureOptions& options) {
  constexpr double kAlphas[] = {0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.1, 1.2};
  Figure figure{.name = "theory",
                .title = "How much the nodes carry, and what binds them",
                .x_title = "Zipf parameter",
                .y_title = kThroughput};
  for (const double alpha : kAlphas) figure.x.push_back(fmt::format("{:g}", alpha));
  figure.series = {
      named("condition max p·R = T/2"), named("nodes, best split"), named("nodes, random split"),
      named("nodes, 3 layers"),         named("servers"),           named("objects in J", false),
      named("nodes in Γ(J)", false)};
  fill_cells(figure, options.runs, [&](size_t s, size_t x, size_t run) {
    Scenario scenario = scenario_of_run(options, run);
    scenario.alpha = kAlphas[x];
    if (s == 2) scenario.scheme = Scheme::kRandomSplit;
    if (s == 3) scenario.layers = std::max<size_t>(3, scenario.layers);
    const Layout layout = make_layout(scenario);
    if (s == 0) return theorem_rate(layout);
    const Bound bound = fluid_bound(layout);
    if (s == 4) return bound.server_rate;
    if (s == 5) return static_cast<double>(bound.tight_objects.size());
    return s == 6 ? static_cast<double>(bound.tight_nodes.size()) : bound.node_rate;
  });
  figure.notes = {
      fmt::format("T, one node's capacity, is {:g}; nodes: the rate of all requests at which the "
                  "nodes' share fills them, the servers left out",
                  options.scenario.capacity_of_node()),
      "J from the minimum cut: above the bound, the requests for J exceed the capacity of all "
      "nodes that hold an object of J, Γ(J)",
      "the condition is sufficient, not necessary: two nodes carry up to 2T of one object",
      fmt::format("Zipf {:g}: {}", options.scenario.alpha, binding(scenario_of_run(options, 0)))};
  return figure;
}

}  // namespace ballast::sim
