// SPDX-License-Identifier: Apache-2.0
#include "sim/cache_figures.h"

#include <fmt/format.h>

#include "balance/hash.h"

namespace ballast::sim {
namespace {

constexpr FigureKind<CacheFigureOptions> kKinds[] = {
    {"schemes", "all schemes at one setting: fluid bound and sustained rate", schemes_figure},
    {"skew", "throughput of all schemes by the skew of the requests", skew_figure},
    {"cache-size", "throughput by how many objects the nodes hold", cache_size_figure},
    {"scale", "throughput by the number of racks, and how straight the line is", scale_figure},
    {"writes", "throughput by the share of writes", writes_figure},
    {"failure", "an eighth of the spines fails, is remapped, returns", failure_figure},
    {"theory", "the theorem's condition and the object set that binds", theory_figure},
    {"stability", "queues over time: two choices and a random split at one rate", stability_figure},
    {"warmup", "from empty nodes on, and when other objects turn hot: admission at work",
     warmup_figure},
    {"telemetry", "throughput by the age of loads, routers, own-sent correction", telemetry_figure},
};

// Requests of one server's time that admission takes to know the hottest objects well.
constexpr double kAdmitted = 5000;

}  // namespace

std::span<const FigureKind<CacheFigureOptions>> cache_figures() { return kKinds; }

Scenario scenario_of_run(const CacheFigureOptions& options, size_t run) {
  Scenario scenario = options.scenario;
  scenario.seed = options.runs.seed + run;
  return scenario;
}

QueueingOptions queueing_of_run(const CacheFigureOptions& options, size_t run) {
  QueueingOptions queueing = options.queueing;
  queueing.seed = balance::mix(options.runs.seed + run, 3);
  return queueing;
}

double sustained_near(const Layout& layout, double bound, const CacheFigureOptions& options,
                      size_t run) {
  return sustained_rate(layout, queueing_of_run(options, run), options.timing, bound * 0.8,
                        bound * 1.1);
}

double sustained_admitted(const Scenario& scenario, double bound, const CacheFigureOptions& options,
                          size_t run) {
  const Layout candidates = make_candidates(scenario);
  QueueingOptions queueing = queueing_of_run(options, run);
  queueing.admit_objects = scenario.objects_per_node;
  Timing timing = options.timing;
  timing.warm_up = std::max(timing.warm_up,
                            static_cast<Nanos>(kAdmitted / queueing.requests_per_unit * kSecond));
  return sustained_rate(candidates, queueing, timing, bound * 0.8, bound * 1.4);
}

std::string load_text(const Scenario& scenario) {
  const std::string skew =
      scenario.alpha > 0 ? fmt::format("Zipf {:g}", scenario.alpha) : "uniform";
  return scenario.writes > 0 ? fmt::format("{}, {:.3g} % writes", skew, scenario.writes * 100)
                             : skew + ", read-only";
}

std::vector<Setting> settings_of(const CacheFigureOptions& options) {
  const Scenario& scenario = options.scenario;
  const QueueingOptions& queueing = options.queueing;
  return {{"racks", uint64_t{scenario.racks}},
          {"servers_per_rack", uint64_t{scenario.servers_per_rack}},
          {"spines", uint64_t{scenario.spines}},
          {"layers", uint64_t{scenario.layers}},
          {"objects", uint64_t{scenario.objects}},
          {"objects_per_node", uint64_t{scenario.objects_per_node}},
          {"zipf", scenario.alpha},
          {"writes", scenario.writes},
          {"bench_keys", scenario.bench_keys},
          {"node_capacity", scenario.capacity_of_node()},
          {"server_requests_per_second", queueing.requests_per_unit},
          {"routers", uint64_t{queueing.routers}},
          {"telemetry_ns", static_cast<uint64_t>(queueing.telemetry)},
          {"queue", queueing.queue},
          {"own_sent", queueing.choice.own_sent},
          {"ageing", queueing.choice.ageing},
          {"arrivals", std::string(queueing.paced ? "paced" : "poisson")},
          {"service", std::string(queueing.exponential_service ? "exponential" : "fixed")},
          {"measured_ns", static_cast<uint64_t>(options.timing.measured)},
          {"runs", uint64_t{options.runs.count}}};
}

}  // namespace ballast::sim
