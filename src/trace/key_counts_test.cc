// SPDX-License-Identifier: Apache-2.0
#include "trace/key_counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "balance/hash.h"
#include "balance/zipf.h"
#include "base/random.h"
#include "proto/slot.h"

namespace ballast::trace {
namespace {

std::string key_of(uint64_t rank) { return "key:" + std::to_string(rank); }

struct Truth {
  std::unordered_map<std::string, uint64_t> counts;
  Workload workload;
};

Truth count(uint64_t objects, double alpha, uint64_t requests, size_t most_keys) {
  Truth truth;
  Random random(3);
  const balance::Zipf zipf(objects, alpha);
  KeyCounts counts(most_keys);
  for (uint64_t i = 0; i < requests; ++i) {
    const std::string key = key_of(zipf.sample(random));
    ++truth.counts[key];
    counts.add(key, i % 4 == 0);
  }
  counts.finish(truth.workload);
  return truth;
}

TEST(KeyCounts, CountsEachKeyWhileTheyAreFew) {
  const Truth truth = count(5000, 0.8, 50'000, 5000);
  const Workload& workload = truth.workload;
  EXPECT_TRUE(workload.exact);
  EXPECT_EQ(workload.requests, 50'000U);
  EXPECT_EQ(workload.distinct, static_cast<double>(truth.counts.size()));
  ASSERT_EQ(workload.keys.size(), truth.counts.size());
  ASSERT_EQ(workload.names.size(), std::min<size_t>(4096, workload.keys.size()));
  uint64_t writes = 0;
  for (size_t i = 0; i < workload.keys.size(); ++i) {
    const KeyCount& key = workload.keys[i];
    EXPECT_LE(key.count, workload.keys[i > 0 ? i - 1 : 0].count);
    writes += key.writes;
    if (i >= 1000) continue;  // of the rest some may be without a name
    const std::string& name = workload.names[i];
    ASSERT_TRUE(truth.counts.contains(name)) << i << " " << name;
    EXPECT_EQ(key.count, truth.counts.at(name));
    EXPECT_EQ(key.hash, balance::key_hash(name));
    EXPECT_EQ(key.slot, proto::key_slot(name));
  }
  EXPECT_EQ(writes, 12'500U);
}

TEST(KeyCounts, BeyondItsBoundTheHottestKeysAreKnownWithinTheirError) {
  const Truth truth = count(200'000, 0.99, 300'000, 2000);
  const Workload& workload = truth.workload;
  EXPECT_FALSE(workload.exact);
  EXPECT_EQ(workload.requests, 300'000U);
  EXPECT_LE(workload.most_error, 300'000U / 2000);
  EXPECT_GT(workload.keys.size(), 20U);
  EXPECT_LE(workload.keys.size(), 2000U);
  for (size_t i = 0; i < workload.keys.size(); ++i) {
    const KeyCount& key = workload.keys[i];
    const uint64_t true_count = truth.counts.at(workload.names.at(i));
    EXPECT_GE(key.count, true_count);
    EXPECT_LE(key.count - key.error, true_count);
    EXPECT_LE(key.error * 16, key.count);
  }
  for (const auto& [key, times] : truth.counts) {
    if (times <= 2 * workload.most_error) continue;
    const bool held = std::any_of(workload.names.begin(), workload.names.end(),
                                  [&](const std::string& name) { return name == key; });
    EXPECT_TRUE(held || times <= 16 * workload.most_error) << key << " " << times;
  }
  EXPECT_NEAR(workload.distinct, static_cast<double>(truth.counts.size()),
              4 * workload.distinct_error);
  EXPECT_GT(workload.distinct_error, 0);
}

TEST(KeyCounts, ALongNameIsCutAndStillKnowsItsSlot) {
  KeyCounts counts(10);
  const std::string key(10'000, 'k');
  counts.add(key, false, 7);
  counts.add("", true);
  Workload workload;
  counts.finish(workload);
  EXPECT_LT(workload.names[0].size(), 300U);
  EXPECT_EQ(workload.keys[0].slot, proto::key_slot(key));
  EXPECT_EQ(workload.keys[0].count, 7U);
  EXPECT_EQ(workload.names[1], "");
  EXPECT_EQ(workload.keys[1].writes, 1U);
}

TEST(DistinctHashes, ExactWhileFewThenWithinItsError) {
  DistinctHashes few;
  for (int round = 0; round < 2; ++round)
    for (uint64_t i = 0; i < 1000; ++i) few.add(balance::mix(i, 5));
  EXPECT_EQ(few.estimate(), 1000);
  EXPECT_EQ(few.error(), 0);
  DistinctHashes many;
  for (int round = 0; round < 2; ++round)
    for (uint64_t i = 0; i < 300'000; ++i) many.add(balance::mix(i, 5));
  EXPECT_NEAR(many.estimate(), 300'000, 4 * many.error());
  EXPECT_LT(many.error(), 3000);
}

}  // namespace
}  // namespace ballast::trace
