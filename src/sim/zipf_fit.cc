// SPDX-License-Identifier: Apache-2.0
#include "sim/zipf_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "balance/zipf.h"

namespace ballast::sim {
namespace {

constexpr uint64_t kSingleRanks = 256;  // then groups of ranks, each this factor wider
constexpr double kGroupWidth = 1.02;
constexpr size_t kExactLevels = 64;
constexpr double kWindow = 7;     // standard deviations after which a Poisson count is certain
constexpr int kAlphaSteps = 22;   // to 10^-6
constexpr size_t kLeastKeys = 3;  // of which an exponent is fitted
constexpr double kLeastRequests = 30;
constexpr double kChance = 1.63;  // times 1 / sqrt(n): the 1 % point of the KS distance

double normal_below(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }

// P(Poisson(rate) >= count), by the cube root that makes a gamma variable normal (Wilson and
// Hilferty 1931); for counts above kExactLevels its error is below 10^-4.
double reaches(double rate, double count) {
  const double cube = std::cbrt(rate / count);
  return normal_below(3 * std::sqrt(count) * (cube - 1 + 1 / (9 * count)));
}

// log(k!) at whole k, straight between: exact for the mean of a count that is one of two
// neighbours.
double log_factorial(double k) {
  const double whole = std::floor(k);
  return std::lgamma(whole + 1) + (k - whole) * std::log(whole + 1);
}

// The root of a function that falls from low to high.
double falling_root(double low, double high, int steps, const std::function<double(double)>& f) {
  for (int i = 0; i < steps; ++i) {
    const double middle = (low + high) / 2;
    (f(middle) > 0 ? low : high) = middle;
  }
  return (low + high) / 2;
}

// How many objects there are if so many distinct ones were seen.
uint64_t objects_for(double alpha, double distinct, double total) {
  const auto seen = [&](double objects) {
    return SortedCounts(alpha, static_cast<uint64_t>(objects), total).distinct();
  };
  const auto least = static_cast<uint64_t>(std::ceil(distinct));
  // So close to all of them that the number unseen is below one.
  if (seen(static_cast<double>(least) + 1) > distinct) return least;
  const double log_objects =
      falling_root(std::log(static_cast<double>(least)), std::log(static_cast<double>(kMostFitted)),
                   40, [&](double x) { return distinct - seen(std::exp(x)); });
  return static_cast<uint64_t>(std::llround(std::exp(log_objects)));
}

struct Observed {
  double in_sample = 0;  // requests to the keys of the sample
  double mean = 0;       // of the logarithm of the rank
  double variance = 0;
};

Observed observe(const Sample& sample) {
  Observed observed;
  double sum = 0;
  double squares = 0;
  for (size_t i = 0; i < sample.counts.size(); ++i) {
    const auto count = static_cast<double>(sample.counts[i]);
    const double log_rank = std::log(static_cast<double>(i + 1));
    observed.in_sample += count;
    sum += count * log_rank;
    squares += count * log_rank * log_rank;
  }
  observed.mean = sum / observed.in_sample;
  observed.variance = squares / observed.in_sample - observed.mean * observed.mean;
  return observed;
}

double largest_distance(const Sample& sample, const SortedCounts& model) {
  std::vector<double> sums{0};
  sums.reserve(sample.counts.size() + 1);
  for (const uint64_t count : sample.counts)
    sums.push_back(sums.back() + static_cast<double>(count));
  const std::vector<double> mass = model.mass();
  const auto last = static_cast<double>(sample.counts.size());
  double largest = 0;
  for (size_t i = 0; i < mass.size(); ++i) {
    const double rank = model.reaching()[i];
    if (rank > last) continue;
    const double whole = std::floor(rank);
    const auto at = static_cast<size_t>(whole);
    const double next = at + 1 < sums.size() ? sums[at + 1] : sums[at];
    const double seen = sums[at] + (rank - whole) * (next - sums[at]);
    largest = std::max(largest, std::abs(seen - mass[i]));
  }
  return largest / static_cast<double>(sample.total);
}

}  // namespace

SortedCounts::SortedCounts(double alpha, uint64_t objects, double total) {
  const double scale = total / balance::harmonic_range(alpha, 1, objects);
  for (uint64_t first = 1; first <= objects;) {
    uint64_t last = first;
    if (first > kSingleRanks) {
      const double wide = std::floor(static_cast<double>(first) * kGroupWidth);
      last = std::min(objects, std::max(first, static_cast<uint64_t>(wide)));
    }
    const auto size = static_cast<double>(last - first + 1);
    groups_.push_back({size, scale * balance::harmonic_range(alpha, first, last) / size});
    first = last + 1;
  }
}

double SortedCounts::distinct() const {
  double sum = 0;
  for (const Group& group : groups_) sum -= group.objects * std::expm1(-group.rate);
  return sum;
}

double SortedCounts::distinct_deviation() const {
  double variance = 0;
  for (const Group& group : groups_)
    variance -= group.objects * std::exp(-group.rate) * std::expm1(-group.rate);
  return std::sqrt(variance);
}

void SortedCounts::spread() {
  const double largest = groups_.front().rate;
  const double most = largest + kWindow * std::sqrt(largest) + 2 * kExactLevels;
  for (double level = 1; level <= most;) {
    levels_.push_back(level);
    level += level < kExactLevels ? 1 : std::max(1.0, std::floor(std::sqrt(level) / 4));
  }
  reaching_.assign(levels_.size(), 0);
  for (const Group& group : groups_) {
    double at_least = 1;
    double exactly = std::exp(-group.rate);
    for (size_t level = 1; level <= kExactLevels; ++level) {
      at_least -= exactly;
      exactly *= group.rate / static_cast<double>(level);
      reaching_[level - 1] += group.objects * std::max(0.0, at_least);
    }
  }
  size_t certain = 0;  // groups that reach the level for sure: they come first
  double certain_objects = 0;
  for (size_t i = levels_.size(); i-- > kExactLevels;) {
    const double level = levels_[i];
    while (certain < groups_.size() &&
           groups_[certain].rate - kWindow * std::sqrt(groups_[certain].rate) > level) {
      certain_objects += groups_[certain++].objects;
    }
    double sum = certain_objects;
    for (size_t g = certain; g < groups_.size(); ++g) {
      if (groups_[g].rate + kWindow * std::sqrt(level) < level) break;
      sum += groups_[g].objects * reaches(groups_[g].rate, level);
    }
    reaching_[i] = sum;
  }
}

std::vector<double> SortedCounts::mass() const {
  std::vector<double> mass(levels_.size());
  double above = 0;  // sum of reaching over the counts above this level
  for (size_t i = levels_.size(); i-- > 0;) {
    if (i + 1 < levels_.size()) {
      const double step = levels_[i + 1] - levels_[i];
      above += reaching_[i + 1] * (step + 1) / 2 + reaching_[i] * (step - 1) / 2;
    }
    mass[i] = levels_[i] * reaching_[i] + above;
  }
  return mass;
}

// With ranks 1 ... G(c) reaching c, the sum over objects of count * log(rank) is the sum over c of
// log(G(c)!), and the sum of counts that of G(c).
double SortedCounts::mean_log_rank(double ranks) const {
  double logs = 0;
  double counts = 0;
  for (size_t i = 0; i < levels_.size(); ++i) {
    // Each level stands for half the way to its neighbours, whole counts on both sides.
    const double up = i + 1 < levels_.size() ? (levels_[i + 1] - levels_[i] - 1) / 2 : 0;
    const double down = i > 0 ? (levels_[i] - levels_[i - 1] - 1) / 2 : 0;
    const double reaching = std::min(reaching_[i], ranks);
    logs += (1 + up + down) * log_factorial(reaching);
    counts += (1 + up + down) * reaching;
  }
  return logs / counts;
}

ZipfFit fit_zipf(const Sample& sample) {
  ZipfFit fit;
  const auto total = static_cast<double>(sample.total);
  if (sample.counts.size() < kLeastKeys || total < kLeastRequests) return fit;
  fit.enough = true;
  const Observed observed = observe(sample);
  const auto ranks = static_cast<double>(sample.counts.size());
  const auto model_at = [&](double alpha, double distinct) {
    const uint64_t objects =
        sample.objects > 0 ? sample.objects : objects_for(alpha, distinct, total);
    SortedCounts model(alpha, objects, total);
    model.spread();
    return model;
  };
  const auto mean_at = [&](double alpha, double distinct) {
    return model_at(alpha, distinct).mean_log_rank(ranks);
  };
  fit.alpha = falling_root(0, kMostAlpha, kAlphaSteps, [&](double alpha) {
    return mean_at(alpha, sample.distinct) - observed.mean;
  });
  fit.objects =
      sample.objects > 0 ? sample.objects : objects_for(fit.alpha, sample.distinct, total);
  const SortedCounts model = model_at(fit.alpha, sample.distinct);
  // The error by how the statistic and the number of distinct keys scatter.
  constexpr double kStep = 0.01;
  const double low = std::max(0.0, fit.alpha - kStep);
  const double slope =
      (mean_at(low, sample.distinct) - mean_at(fit.alpha + kStep, sample.distinct)) /
      (fit.alpha + kStep - low);
  double by_distinct = 0;
  if (sample.objects == 0) {
    const double scatter = std::hypot(model.distinct_deviation(), sample.distinct_error);
    by_distinct = mean_at(fit.alpha, sample.distinct + scatter) - model.mean_log_rank(ranks);
  }
  fit.standard_error = std::hypot(std::sqrt(observed.variance / observed.in_sample), by_distinct) /
                       std::max(slope, 1e-9);
  fit.distance = largest_distance(sample, model);
  fit.fits = fit.distance <= std::max(kFits, kChance / std::sqrt(total));
  return fit;
}

}  // namespace ballast::sim
