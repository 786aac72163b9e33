// SPDX-License-Identifier: Apache-2.0
// The figures of DistCache's evaluation, drawn from the fluid and the queueing model.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/figure.h"
#include "sim/queueing.h"

namespace ballast::sim {

struct CacheFigureOptions {
  Scenario scenario = {};
  QueueingOptions queueing = {};
  Timing timing = {};
  Runs runs = {};  // each with a placement, requests and service times of its own
};

std::span<const FigureKind<CacheFigureOptions>> cache_figures();

Figure skew_figure(const CacheFigureOptions& options);
Figure cache_size_figure(const CacheFigureOptions& options);
Figure schemes_figure(const CacheFigureOptions& options);
Figure scale_figure(const CacheFigureOptions& options);
Figure writes_figure(const CacheFigureOptions& options);
Figure theory_figure(const CacheFigureOptions& options);
Figure failure_figure(const CacheFigureOptions& options);
Figure stability_figure(const CacheFigureOptions& options);
Figure warmup_figure(const CacheFigureOptions& options);
Figure telemetry_figure(const CacheFigureOptions& options);

// What the figures are made of.
Scenario scenario_of_run(const CacheFigureOptions& options, size_t run);
QueueingOptions queueing_of_run(const CacheFigureOptions& options, size_t run);
// The rate that the model sustains with the product's admission choosing what nodes hold, from
// empty ones on.
double sustained_admitted(const Scenario& scenario, double bound, const CacheFigureOptions& options,
                          size_t run);
// The rate that the queueing model sustains, searched for about the fluid bound.
double sustained_near(const Layout& layout, double bound, const CacheFigureOptions& options,
                      size_t run);
// "Zipf 0.99, read-only", "uniform, 2 % writes"
std::string load_text(const Scenario& scenario);
std::vector<Setting> settings_of(const CacheFigureOptions& options);

}  // namespace ballast::sim
