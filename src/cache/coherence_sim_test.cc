// SPDX-License-Identifier: Apache-2.0
// The invariants I1, I2 and I4 over many simulated histories, and for each rule of the protocol a
// build without it, which must be caught.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cache/coherence_sim.h"
#include "cache/sabotage.h"

namespace ballast::cache {
namespace {

constexpr uint64_t kSeeds = 1000;
constexpr uint64_t kMutationSeeds = 5000;  // at most; the first violation ends the search

uint64_t first_seed() {
  const char* given = std::getenv("BALLAST_SIM_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

TEST(CoherenceSim, HoldsWithFaults) {
  sim::Outcome sum;
  for (uint64_t seed = first_seed(); seed < first_seed() + kSeeds; ++seed) {
    const sim::Outcome outcome = sim::run(seed, {});
    ASSERT_EQ(outcome.violation, "") << "BALLAST_SIM_SEED=" << seed;
    sum.events += outcome.events;
    sum.reads += outcome.reads;
    sum.hits += outcome.hits;
    sum.writes += outcome.writes;
    sum.takeovers += outcome.takeovers;
  }
  std::printf("%lu events, %lu reads, %lu from copies, %lu writes, %lu takeovers\n", sum.events,
              sum.reads, sum.hits, sum.writes, sum.takeovers);
  // A simulation in which nothing is cached would prove nothing.
  EXPECT_GT(sum.hits, sum.reads / 20);
  EXPECT_GT(sum.writes, kSeeds * 20);
  EXPECT_GT(sum.takeovers, kSeeds / 10);
}

TEST(CoherenceSim, SameSeedSameHistory) {
  const auto first = sim::run(77, {});
  const auto second = sim::run(77, {});
  EXPECT_EQ(first.events, second.events);
  EXPECT_EQ(first.hits, second.hits);
}

struct Mutation {
  const char* name;
  bool Sabotage::* rule;
};

class CoherenceMutation : public testing::TestWithParam<Mutation> {};

TEST_P(CoherenceMutation, IsCaught) {
  sabotage = {};
  sabotage.*GetParam().rule = true;
  std::string violation;
  uint64_t seed = first_seed();
  for (; seed < first_seed() + kMutationSeeds && violation.empty(); ++seed) {
    violation = sim::run(seed, {}).violation;
  }
  sabotage = {};
  std::printf("%s: seed %lu: %s\n", GetParam().name, seed - 1, violation.c_str());
  EXPECT_NE(violation, "");
}

INSTANTIATE_TEST_SUITE_P(
    Rules, CoherenceMutation,
    testing::Values(Mutation{"skip_phase1", &Sabotage::skip_phase1},
                    Mutation{"skip_lease_wait", &Sabotage::skip_lease_wait},
                    Mutation{"ignore_fill_version", &Sabotage::ignore_fill_version},
                    Mutation{"ignore_copy_id", &Sabotage::ignore_copy_id},
                    Mutation{"revive_lapsed", &Sabotage::revive_lapsed},
                    Mutation{"skip_takeover_wait", &Sabotage::skip_takeover_wait},
                    Mutation{"lease_without_ping", &Sabotage::lease_without_ping},
                    Mutation{"read_during_write", &Sabotage::read_during_write},
                    Mutation{"keep_on_drop_all", &Sabotage::keep_on_drop_all},
                    Mutation{"count_from_grant", &Sabotage::count_from_grant}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace ballast::cache
