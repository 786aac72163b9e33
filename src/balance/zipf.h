// SPDX-License-Identifier: Apache-2.0
// Zipf's law over ranks 0 ... n-1, P(rank) proportional to (rank + 1)^-alpha, for any alpha >= 0 (0
// is uniform): an O(1) sampler and its exact probabilities.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace ballast::balance {

// Rejection inversion: Hörmann and Derflinger, "Rejection-inversion to generate variates from
// monotone discrete distributions", ACM TOMACS 6(3), 1996. No tables.
class Zipf {
 public:
  // `n` from 1 to 10^9 or so (doubles must tell n and n + 1/2 apart), `alpha` >= 0.
  Zipf(uint64_t n, double alpha);

  // A rank in [0, n), 0 the most frequent.
  uint64_t sample(Random& random) const;

  uint64_t size() const { return n_; }
  double alpha() const { return alpha_; }

 private:
  double integral(double x) const;
  double inverse(double y) const;
  double density(double x) const;

  uint64_t n_;
  double alpha_;
  double low_;
  double high_;
  double sure_;
};

// Sum of k^-alpha for k = first ... last, first >= 1; 0 if the range is empty. Direct up to 64,
// Euler-Maclaurin beyond; relative error below 10^-13.
double harmonic_range(double alpha, uint64_t first, uint64_t last);

// Probability that a sample's rank is in [from, to).
double zipf_mass(uint64_t n, double alpha, uint64_t from, uint64_t to);

}  // namespace ballast::balance
