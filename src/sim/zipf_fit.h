// SPDX-License-Identifier: Apache-2.0
// Zipf's exponent from how often each key was seen. Ranks come from the same counts as the fit, so
// plain maximum likelihood over them calls chance skew; here the statistic that it uses, the mean
// logarithm of the rank, is held against what sorted Poisson counts give on average.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ballast::sim {

struct Sample {
  std::span<const uint64_t> counts;  // largest first, none 0; maybe only of the hottest keys
  uint64_t total = 0;                // requests to all keys
  double distinct = 0;               // keys seen, at least counts.size()
  double distinct_error = 0;         // standard error of that, 0 when counted
  uint64_t objects = 0;              // how many there are, seen or not; 0: to be estimated
};

struct ZipfFit {
  bool enough = false;  // else there is too little to fit, and nothing below is set
  double alpha = 0;     // in [0, kMostAlpha]
  double standard_error = 0;
  uint64_t objects = 0;  // with which that exponent gives as many distinct keys as were seen
  // Kolmogorov-Smirnov: the largest difference between the share of the requests that go to the
  // hottest r keys and what the law says, over all r of the sample.
  double distance = 0;
  bool fits = false;  // distance is at most kFits, or what chance alone gives
};

inline constexpr double kMostAlpha = 4;
inline constexpr double kFits = 0.05;
inline constexpr uint64_t kMostFitted = 10'000'000'000;

ZipfFit fit_zipf(const Sample& sample);

// What `total` requests to `objects` objects give on average when the objects' counts are sorted.
class SortedCounts {
 public:
  SortedCounts(double alpha, uint64_t objects, double total);

  double distinct() const;            // objects seen at least once
  double distinct_deviation() const;  // standard deviation of that
  // Levels of counts from 1 up, and how many objects reach each; the latter falls.
  std::span<const double> levels() const { return levels_; }
  std::span<const double> reaching() const { return reaching_; }
  // Requests to the objects that reach each level.
  std::vector<double> mass() const;
  // Mean logarithm of the rank over the requests to the hottest `ranks` objects.
  double mean_log_rank(double ranks) const;

  // Fills levels() and reaching(), without which only distinct() is known.
  void spread();

 private:
  struct Group {
    double objects;
    double rate;  // expected count of each
  };
  std::vector<Group> groups_;  // the largest rate first
  std::vector<double> levels_;
  std::vector<double> reaching_;
};

}  // namespace ballast::sim
