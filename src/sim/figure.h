// SPDX-License-Identifier: Apache-2.0
// A figure as data, whatever it is of: lines over x, each cell with its confidence interval, filled
// by independent runs spread over the cores. figure_report.h prints it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/sustained.h"

namespace ballast::sim {

// One column of the table, one line of the plot. An infinite mean: without bound.
struct Series {
  std::string name = {};
  std::vector<Estimate> cells = {};  // by x
  bool plotted = true;
};

// A setting that the figure was made with, for its JSON; names end in their unit.
using Setting = std::pair<std::string, std::variant<uint64_t, double, bool, std::string>>;

struct Figure {
  std::string name = {};
  std::string title = {};
  std::string x_title = {};
  std::string y_title = {};
  std::vector<std::string> x = {};
  std::vector<Series> series = {};
  std::vector<std::string> notes = {};  // assumptions, and where a shape is not the paper's and why
  std::vector<uint64_t> seeds = {};     // one a run
  std::vector<Setting> settings = {};
};

// Independent runs of each cell; run r has the seed `seed` + r.
struct Runs {
  size_t count = 3;
  uint64_t seed = 1;
  std::function<void(size_t done, size_t of)> progress = {};
};

// value() gives one number of one run, which counts from 0.
using CellValue = std::function<double(size_t series, size_t x, size_t run)>;
void fill_cells(Figure& figure, const Runs& runs, const CellValue& value);

// All cells of one series' run at once: for what develops over time (x).
using LineValues = std::function<std::vector<double>(size_t series, size_t run)>;
void fill_lines(Figure& figure, const Runs& runs, const LineValues& values);

// Coefficient of determination of the best straight line through (x, y).
double linear_fit(std::span<const double> x, std::span<const double> y);

// The figures of one family, which are made from Options.
template <typename Options>
struct FigureKind {
  const char* name;
  const char* help;
  Figure (*make)(const Options& options);
};

}  // namespace ballast::sim
