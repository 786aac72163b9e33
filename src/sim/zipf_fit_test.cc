// SPDX-License-Identifier: Apache-2.0
#include "sim/zipf_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "balance/zipf.h"
#include "base/random.h"

namespace ballast::sim {
namespace {

std::vector<uint64_t> sorted(const std::unordered_map<uint64_t, uint64_t>& counts) {
  std::vector<uint64_t> out;
  for (const auto& [key, count] : counts) out.push_back(count);
  std::sort(out.begin(), out.end(), std::greater<>());
  return out;
}

std::vector<uint64_t> draw(uint64_t objects, double alpha, uint64_t requests, uint64_t seed) {
  Random random(seed);
  const balance::Zipf zipf(objects, alpha);
  std::unordered_map<uint64_t, uint64_t> counts;
  for (uint64_t i = 0; i < requests; ++i) ++counts[zipf.sample(random)];
  return sorted(counts);
}

Sample sample_of(const std::vector<uint64_t>& counts, uint64_t requests) {
  return {counts, requests, static_cast<double>(counts.size())};
}

struct Case {
  uint64_t objects;
  double alpha;
  uint64_t requests;
};

TEST(ZipfFit, FindsTheExponentWithinItsError) {
  constexpr Case kCases[] = {{1000, 0.99, 100'000},     {100'000, 0.99, 100'000},
                             {100'000, 0.5, 200'000},   {10'000'000, 0.9, 200'000},
                             {2'000'000, 1.2, 100'000}, {100'000'000, 0.99, 50'000}};
  double squares = 0;
  int draws = 0;
  for (const Case& one : kCases) {
    for (uint64_t seed = 1; seed <= 3; ++seed, ++draws) {
      const auto counts = draw(one.objects, one.alpha, one.requests, seed);
      const ZipfFit fit = fit_zipf(sample_of(counts, one.requests));
      SCOPED_TRACE(testing::Message() << one.objects << " objects, Zipf " << one.alpha << ", seed "
                                      << seed << ": " << fit.alpha << " ±" << fit.standard_error
                                      << " of " << fit.objects << ", distance " << fit.distance);
      ASSERT_TRUE(fit.enough);
      EXPECT_TRUE(fit.fits);
      EXPECT_LT(fit.distance, 0.01);
      const double z = (fit.alpha - one.alpha) / fit.standard_error;
      EXPECT_LT(std::abs(z), 3.5);
      squares += z * z;
    }
  }
  // The error is neither too small nor put so large that it says nothing.
  EXPECT_LT(std::sqrt(squares / draws), 1.5);
  EXPECT_GT(std::sqrt(squares / draws), 0.5);
}

TEST(ZipfFit, UniformRequestsAreNotCalledSkewed) {
  const ZipfFit fit = fit_zipf(sample_of(draw(100'000, 0, 300'000, 4), 300'000));
  EXPECT_LT(fit.alpha, 0.1);
  EXPECT_TRUE(fit.fits);
  EXPECT_NEAR(static_cast<double>(fit.objects), 100'000, 1000);
}

TEST(ZipfFit, TheHottestKeysAloneTellTheExponent) {
  const auto counts = draw(100'000, 0.99, 300'000, 5);
  Sample sample = sample_of(counts, 300'000);
  sample.counts = sample.counts.first(500);
  const ZipfFit fit = fit_zipf(sample);
  EXPECT_NEAR(fit.alpha, 0.99, 4 * fit.standard_error);
  EXPECT_LT(fit.standard_error, 0.01);
  EXPECT_TRUE(fit.fits);
}

TEST(ZipfFit, AHotSetIsNoZipf) {
  Random random(6);
  std::unordered_map<uint64_t, uint64_t> seen;
  for (int i = 0; i < 100'000; ++i) ++seen[random.below(random.below(10) < 9 ? 100 : 10'000)];
  const auto counts = sorted(seen);
  const ZipfFit fit = fit_zipf(sample_of(counts, 100'000));
  EXPECT_TRUE(fit.enough);
  EXPECT_FALSE(fit.fits);
  EXPECT_GT(fit.distance, 0.2);
}

TEST(ZipfFit, TooLittleIsNotFitted) {
  const std::vector<uint64_t> two{50, 40};
  EXPECT_FALSE(fit_zipf(sample_of(two, 90)).enough);
  const std::vector<uint64_t> few{3, 2, 1};
  EXPECT_FALSE(fit_zipf(sample_of(few, 6)).enough);
  const std::vector<uint64_t> one_key{1'000'000, 1, 1};
  EXPECT_GT(fit_zipf(sample_of(one_key, 1'000'002)).alpha, 2);
}

TEST(SortedCounts, MassAndDistinctAreThoseOfASample) {
  constexpr uint64_t kRequests = 200'000;
  const auto counts = draw(50'000, 0.8, kRequests, 7);
  SortedCounts model(0.8, 50'000, kRequests);
  model.spread();
  EXPECT_NEAR(model.distinct(), static_cast<double>(counts.size()), 5 * model.distinct_deviation());
  EXPECT_NEAR(model.reaching().front(), model.distinct(), 1);
  EXPECT_NEAR(model.mass().front(), kRequests, kRequests * 0.001);
}

}  // namespace
}  // namespace ballast::sim
