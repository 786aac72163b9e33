// SPDX-License-Identifier: Apache-2.0
#include "sim/figure.h"

#include <cmath>

#include "balance/hash.h"

namespace ballast::sim {
namespace {

constexpr FigureKind kKinds[] = {
    {"skew", "throughput of all schemes by the skew of the requests", skew_figure},
    {"cache-size", "throughput by how many objects the nodes hold", cache_size_figure},
    {"scale", "throughput by the number of racks, and how straight the line is", scale_figure},
    {"writes", "throughput by the share of writes", writes_figure},
    {"failure", "an eighth of the spines fails, is remapped, returns", failure_figure},
    {"theory", "the theorem's condition and the object set that binds", theory_figure},
    {"stability", "queues over time: two choices and a random split at one rate", stability_figure},
    {"telemetry", "throughput by the age of loads, routers, own-sent correction", telemetry_figure},
};

// Runs `job` for every index and counts in the options' progress.
void run_all(size_t count, const FigureOptions& options, const std::function<void(size_t)>& job) {
  run_parallel(count, job, [&](size_t done) {
    if (options.progress) options.progress(done, count);
  });
}

void prepare(Figure& figure, const FigureOptions& options) {
  for (Series& series : figure.series) series.cells.assign(figure.x.size(), {});
  for (size_t run = 0; run < options.runs; ++run)
    figure.seeds.push_back(scenario_of_run(options, run).seed);
}

}  // namespace

std::span<const FigureKind> figure_kinds() { return kKinds; }

const FigureKind* find_figure(const std::string& name) {
  for (const FigureKind& kind : kKinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

void fill_cells(Figure& figure, const FigureOptions& options, const CellValue& value) {
  prepare(figure, options);
  const size_t width = figure.x.size();
  std::vector<double> samples(figure.series.size() * width * options.runs);
  run_all(samples.size(), options, [&](size_t i) {
    const size_t cell = i / options.runs;
    samples[i] = value(cell / width, cell % width, i % options.runs);
  });
  for (size_t cell = 0; cell * options.runs < samples.size(); ++cell) {
    figure.series[cell / width].cells[cell % width] =
        estimate({samples.data() + cell * options.runs, options.runs});
  }
}

void fill_lines(Figure& figure, const FigureOptions& options, const LineValues& values) {
  prepare(figure, options);
  std::vector<std::vector<double>> lines(figure.series.size() * options.runs);
  run_all(lines.size(), options,
          [&](size_t i) { lines[i] = values(i / options.runs, i % options.runs); });
  for (size_t s = 0; s < figure.series.size(); ++s) {
    for (size_t x = 0; x < figure.x.size(); ++x) {
      std::vector<double> samples;
      for (size_t run = 0; run < options.runs; ++run)
        samples.push_back(lines[s * options.runs + run][x]);
      figure.series[s].cells[x] = estimate(samples);
    }
  }
}

Scenario scenario_of_run(const FigureOptions& options, size_t run) {
  Scenario scenario = options.scenario;
  scenario.seed = options.seed + run;
  return scenario;
}

QueueingOptions queueing_of_run(const FigureOptions& options, size_t run) {
  QueueingOptions queueing = options.queueing;
  queueing.seed = balance::mix(options.seed + run, 3);
  return queueing;
}

double sustained_near(const Layout& layout, double bound, const FigureOptions& options,
                      size_t run) {
  return sustained_rate(layout, queueing_of_run(options, run), options.timing, bound * 0.8,
                        bound * 1.1);
}

double linear_fit(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size());
  double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    sx += x[i];
    sy += y[i];
    sxx += x[i] * x[i];
    sxy += x[i] * y[i];
    syy += y[i] * y[i];
  }
  const double covariance = n * sxy - sx * sy;
  const double spread = (n * sxx - sx * sx) * (n * syy - sy * sy);
  return spread > 0 ? covariance * covariance / spread : 1;
}

}  // namespace ballast::sim
