// SPDX-License-Identifier: Apache-2.0
// The rate that the queueing model sustains, over independent runs spread over the cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "sim/queueing.h"

namespace ballast::sim {

// Mean and half the width of its 95 % confidence interval (Student's t; 0 for one sample).
struct Estimate {
  double mean = 0;
  double half_width = 0;
};
Estimate estimate(std::span<const double> samples);

struct Timing {
  Nanos warm_up = 1500 * kMillisecond;  // longer than the nodes' window of a second
  Nanos measured = 2 * kSecond;
};

Counts measure(const Layout& layout, const QueueingOptions& options, const Timing& timing);

// The largest rate with under 1 % of the requests lost, in all and at each node and server, found
// up to `high` by bisection to one part in 30 of its distance from `low`, which is halved first
// while it loses more; options.rate is not read. Needs 0 < low < high.
double sustained_rate(const Layout& layout, const QueueingOptions& options, const Timing& timing,
                      double low, double high);

// Calls job(0) ... job(count - 1), each once, on as many threads as there are cores. `done` is
// called after each on the calling thread or another, one at a time, with how many are done.
void run_parallel(size_t count, const std::function<void(size_t)>& job,
                  const std::function<void(size_t)>& done = {});

}  // namespace ballast::sim
