// SPDX-License-Identifier: Apache-2.0
#include "sim/figure.h"

namespace ballast::sim {
namespace {

// Runs `job` for every index and counts in their progress.
void run_all(size_t count, const Runs& runs, const std::function<void(size_t)>& job) {
  run_parallel(count, job, [&](size_t done) {
    if (runs.progress) runs.progress(done, count);
  });
}

void prepare(Figure& figure, const Runs& runs) {
  for (Series& series : figure.series) series.cells.assign(figure.x.size(), {});
  for (size_t run = 0; run < runs.count; ++run) figure.seeds.push_back(runs.seed + run);
}

}  // namespace

void fill_cells(Figure& figure, const Runs& runs, const CellValue& value) {
  prepare(figure, runs);
  const size_t width = figure.x.size();
  std::vector<double> samples(figure.series.size() * width * runs.count);
  run_all(samples.size(), runs, [&](size_t i) {
    const size_t cell = i / runs.count;
    samples[i] = value(cell / width, cell % width, i % runs.count);
  });
  for (size_t cell = 0; cell * runs.count < samples.size(); ++cell) {
    figure.series[cell / width].cells[cell % width] =
        estimate({samples.data() + cell * runs.count, runs.count});
  }
}

void fill_lines(Figure& figure, const Runs& runs, const LineValues& values) {
  prepare(figure, runs);
  std::vector<std::vector<double>> lines(figure.series.size() * runs.count);
  run_all(lines.size(), runs, [&](size_t i) { lines[i] = values(i / runs.count, i % runs.count); });
  for (size_t s = 0; s < figure.series.size(); ++s) {
    for (size_t x = 0; x < figure.x.size(); ++x) {
      std::vector<double> samples;
      for (size_t run = 0; run < runs.count; ++run)
        samples.push_back(lines[s * runs.count + run][x]);
      figure.series[s].cells[x] = estimate(samples);
    }
  }
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
