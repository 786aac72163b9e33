// SPDX-License-Identifier: Apache-2.0
#include "sim/sustained.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>
#include <vector>

namespace ballast::sim {
namespace {

constexpr double kLossAllowed = 0.01;
constexpr double kPrecision = 30;
constexpr int kMostHalvings = 10;

// 97.5 % quantile of Student's t by degrees of freedom.
double student(size_t freedom) {
  constexpr double kQuantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                                   2.447,  2.365, 2.306, 2.262, 2.228};
  return freedom <= std::size(kQuantiles) ? kQuantiles[freedom - 1] : 2.1;
}

}  // namespace

Estimate estimate(std::span<const double> samples) {
  Estimate out;
  const auto count = static_cast<double>(samples.size());
  for (const double sample : samples) out.mean += sample / count;
  if (samples.size() < 2) return out;
  double squares = 0;
  for (const double sample : samples) squares += (sample - out.mean) * (sample - out.mean);
  out.half_width = student(samples.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return out;
}

Counts measure(const Layout& layout, const QueueingOptions& options, const Timing& timing) {
  QueueingModel model(layout, options);
  model.run(timing.warm_up);
  model.take_counts();
  model.run(timing.warm_up + timing.measured);
  return model.take_counts();
}

double sustained_rate(const Layout& layout, const QueueingOptions& options, const Timing& timing,
                      double low, double high) {
  const auto good = [&](double rate) {
    QueueingOptions attempt = options;
    attempt.rate = rate;
    const Counts counts = measure(layout, attempt, timing);
    return std::max(counts.loss(), counts.worst_loss) < kLossAllowed;
  };
  const double precision = (high - low) / kPrecision;
  for (int halvings = 0; halvings < kMostHalvings && !good(low); ++halvings) {
    high = low;
    low /= 2;
  }
  while (high - low > precision) {
    const double middle = (low + high) / 2;
    (good(middle) ? low : high) = middle;
  }
  return low;
}

void run_parallel(size_t count, const std::function<void(size_t)>& job,
                  const std::function<void(size_t)>& done) {
  std::atomic<size_t> next{0};
  size_t finished = 0;
  std::mutex mutex;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      job(i);
      const std::lock_guard lock(mutex);
      ++finished;
      if (done) done(finished);
    }
  };
  std::vector<std::thread> threads;
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  for (size_t i = 1; i < std::min(cores, count); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ballast::sim
