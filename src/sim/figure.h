// SPDX-License-Identifier: Apache-2.0
// The figures of DistCache's evaluation, drawn from the fluid and the queueing model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/queueing.h"
#include "sim/sustained.h"

namespace ballast::sim {

// One column of the table, one line of the plot. An infinite mean: without bound.
struct Series {
  std::string name = {};
  std::vector<Estimate> cells = {};  // by x
  bool plotted = true;
};

struct Figure {
  std::string name = {};
  std::string title = {};
  std::string x_title = {};
  std::string y_title = {};
  std::vector<std::string> x = {};
  std::vector<Series> series = {};
  std::vector<std::string> notes = {};  // assumptions, and where a shape is not the paper's and why
  std::vector<uint64_t> seeds = {};     // one a run
};

struct FigureOptions {
  Scenario scenario = {};
  QueueingOptions queueing = {};
  Timing timing = {};
  size_t runs = 3;  // independent: placement, requests and service of their own
  uint64_t seed = 1;
  std::function<void(size_t done, size_t of)> progress = {};
};

struct FigureKind {
  const char* name;
  const char* help;
  Figure (*make)(const FigureOptions& options);
};
std::span<const FigureKind> figure_kinds();
const FigureKind* find_figure(const std::string& name);  // null if there is none

Figure skew_figure(const FigureOptions& options);
Figure cache_size_figure(const FigureOptions& options);
Figure scale_figure(const FigureOptions& options);
Figure writes_figure(const FigureOptions& options);
Figure theory_figure(const FigureOptions& options);
Figure failure_figure(const FigureOptions& options);
Figure stability_figure(const FigureOptions& options);
Figure telemetry_figure(const FigureOptions& options);

// What the figures are made of. `run` counts from 0; value() gives one number.
using CellValue = std::function<double(size_t series, size_t x, size_t run)>;
void fill_cells(Figure& figure, const FigureOptions& options, const CellValue& value);

// All cells of one x-series pair's run at once: for what develops over time (x).
using LineValues = std::function<std::vector<double>(size_t series, size_t run)>;
void fill_lines(Figure& figure, const FigureOptions& options, const LineValues& values);

Scenario scenario_of_run(const FigureOptions& options, size_t run);
QueueingOptions queueing_of_run(const FigureOptions& options, size_t run);
// The rate that the queueing model sustains, searched for about the fluid bound.
double sustained_near(const Layout& layout, double bound, const FigureOptions& options, size_t run);
// Coefficient of determination of the best straight line through (x, y).
double linear_fit(std::span<const double> x, std::span<const double> y);

}  // namespace ballast::sim
