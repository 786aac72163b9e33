// SPDX-License-Identifier: Apache-2.0
#include "balance/zipf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ballast::balance {
namespace {

double direct(double alpha, uint64_t first, uint64_t last) {
  long double sum = 0;
  for (uint64_t k = last; k >= first; --k) {
    sum += std::pow(static_cast<long double>(k), static_cast<long double>(-alpha));
  }
  return static_cast<double>(sum);
}

TEST(ZipfMass, AgreesWithDirectSums) {
  for (const double alpha : {0.0, 0.5, 0.9, 0.99, 1.0, 1.000001, 1.3, 2.0, 4.0}) {
    for (const auto& [first, last] : std::vector<std::pair<uint64_t, uint64_t>>{{1, 1},
                                                                                {1, 63},
                                                                                {1, 64},
                                                                                {1, 65},
                                                                                {64, 64},
                                                                                {65, 65},
                                                                                {60, 70},
                                                                                {1, 30'000},
                                                                                {1000, 1003},
                                                                                {20'000, 30'000}}) {
      const double exact = direct(alpha, first, last);
      EXPECT_NEAR(harmonic_range(alpha, first, last) / exact, 1, 1e-13)
          << alpha << " " << first << " " << last;
    }
  }
  EXPECT_EQ(harmonic_range(1, 5, 4), 0);
  EXPECT_EQ(harmonic_range(1, 500, 400), 0);
}

TEST(ZipfMass, KnownValues) {
  // H(10^9) = ln(10^9) + Euler's constant + 1/(2n).
  const double euler = 0.57721566490153286;
  EXPECT_NEAR(harmonic_range(1.0, 1, 1'000'000'000), std::log(1e9) + euler + 0.5e-9, 1e-12);
  EXPECT_NEAR(harmonic_range(2.0, 1, 1'000'000'000), M_PI * M_PI / 6 - 1e-9, 1e-13);
  EXPECT_DOUBLE_EQ(zipf_mass(1000, 0, 100, 300), 0.2);
  EXPECT_DOUBLE_EQ(zipf_mass(1000, 0.99, 0, 5000), 1);
  EXPECT_EQ(zipf_mass(1000, 0.99, 1000, 1001), 0);
  EXPECT_NEAR(
      zipf_mass(100'000'000, 0.99, 0, 6400) + zipf_mass(100'000'000, 0.99, 6400, 100'000'000), 1,
      1e-14);
}

// Chi-square against the exact probabilities, ranks in cells of equal count by doubling.
TEST(Zipf, SamplesFollowTheLaw) {
  uint64_t seed = 0;
  for (const double alpha : {0.0, 0.5, 0.9, 0.99, 1.0, 1.2, 2.5}) {
    for (const uint64_t n : {1ULL, 2ULL, 10ULL, 1000ULL, 100'000'000ULL, 1'000'000'000ULL}) {
      SCOPED_TRACE(testing::Message() << "alpha " << alpha << " n " << n << " seed " << ++seed);
      std::vector<uint64_t> edges;
      for (uint64_t edge = 0; edge < n; edge = edge < 16 ? edge + 1 : edge + edge / 4) {
        edges.push_back(edge);
      }
      edges.push_back(n);
      std::vector<double> seen(edges.size());
      const Zipf zipf(n, alpha);
      Random random(seed);
      const int total = 100'000;
      for (int i = 0; i < total; ++i) {
        const uint64_t rank = zipf.sample(random);
        ASSERT_LT(rank, n);
        const auto cell = std::upper_bound(edges.begin(), edges.end(), rank) - edges.begin() - 1;
        ++seen[static_cast<size_t>(cell)];
      }
      double chi_square = 0;
      double freedom = -1;
      double rest_expected = 0;
      double rest_seen = 0;
      for (size_t i = 0; i + 1 < edges.size(); ++i) {
        // Cells too thin for the statistic are taken together.
        rest_expected += total * zipf_mass(n, alpha, edges[i], edges[i + 1]);
        rest_seen += seen[i];
        if (rest_expected < 20) continue;
        chi_square += std::pow(rest_seen - rest_expected, 2) / rest_expected;
        ++freedom;
        rest_expected = rest_seen = 0;
      }
      if (freedom < 1) continue;
      const double t = 2 / (9 * freedom);
      EXPECT_LT(chi_square, freedom * std::pow(1 - t + 4.26 * std::sqrt(t), 3));
    }
  }
}

}  // namespace
}  // namespace ballast::balance
