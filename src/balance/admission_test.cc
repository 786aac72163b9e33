// SPDX-License-Identifier: Apache-2.0
#include "balance/admission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "balance/hash.h"
#include "balance/zipf.h"

namespace ballast::balance {
namespace {

constexpr size_t kKeys = 100'000;

// A node under an open stream of Zipf 0.99 requests. Reads of keys not held are sampled 1 in
// `sample`; what is admitted is filled at once.
class Workload {
 public:
  Workload(double rate, uint32_t sample, size_t objects, uint64_t seed)
      : gap_(static_cast<Nanos>(1e9 / rate)),
        sample_(sample),
        random_(seed),
        admission_({.objects = objects, .seed = seed}) {}

  void run(Nanos duration) {
    for (const Nanos end = now_ + duration; now_ < end; now_ += gap_) {
      if (now_ >= next_tick_) {
        admission_.tick(now_);
        while (admission_.expel()) {
        }
        next_tick_ = now_ + std::max(20 * kMillisecond, 20 * gap_);
      }
      request(mix(zipf_.sample(random_), salt_));
    }
  }
  void request(uint64_t key) {
    ++requests_;
    const bool held = admission_.holds(key);
    hits_ += held;
    if (!held && sample_ > 1 && random_.below(sample_) != 0) return;
    const auto decision = admission_.observe(key, held ? 1 : sample_);
    if (!decision.admit) return;
    ++admissions_;
    admission_.held(key, 100);
  }
  // Share of the true top c that is held.
  double recall(size_t c) const {
    size_t found = 0;
    for (size_t rank = 0; rank < c; ++rank) found += admission_.holds(mix(rank, salt_));
    return static_cast<double>(found) / static_cast<double>(c);
  }
  void reset() { requests_ = admissions_ = hits_ = 0; }
  void shift() { ++salt_; }
  double churn() const { return static_cast<double>(admissions_) / static_cast<double>(requests_); }
  double hit_ratio() const { return static_cast<double>(hits_) / static_cast<double>(requests_); }
  Nanos now() const { return now_; }
  Nanos gap() const { return gap_; }
  Admission& admission() { return admission_; }
  Random& random() { return random_; }

 private:
  Nanos gap_;
  uint32_t sample_;
  Random random_;
  Admission admission_;
  Zipf zipf_{kKeys, 0.99};
  Nanos now_ = kSecond;
  Nanos next_tick_ = 0;
  uint64_t salt_ = 1;
  uint64_t requests_ = 0;
  uint64_t admissions_ = 0;
  uint64_t hits_ = 0;
};

struct Case {
  double rate;
  uint32_t sample;
};

class AdmissionTest : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr size_t kObjects = 100;
  static constexpr uint64_t kSeed = 7;
  static double best() { return zipf_mass(kKeys, 0.99, 0, kObjects); }
  // Long enough for some forty half-lives, whatever the rate.
  static Nanos settle(double rate) { return static_cast<Nanos>(600'000 / rate * 1e9); }
};

TEST_P(AdmissionTest, HoldsTheHottestWithoutChurn) {
  const auto [rate, sample] = GetParam();
  SCOPED_TRACE(kSeed);
  Workload work(rate, sample, kObjects, kSeed);
  work.run(settle(rate));
  work.reset();
  double recall = 0;
  for (int i = 0; i < 5; ++i) {
    work.run(settle(rate) / 10);
    recall += work.recall(kObjects) / 5;
  }
  // Sampled, a key outside is seen 64 times less often: the last places are a matter of chance, of
  // which the hit ratio hardly hears.
  EXPECT_GE(recall, sample == 1 ? 0.93 : 0.88);
  EXPECT_GE(work.hit_ratio(), 0.97 * best());
  EXPECT_LT(work.churn(), 0.001);
  EXPECT_LE(work.admission().objects(), kObjects);
}

// All popularities change places at once: a rate that shows the new hot keys within half a second
// gets most of the attainable hits in the next half.
TEST_P(AdmissionTest, FollowsAShift) {
  const auto [rate, sample] = GetParam();
  if (rate < 10'000) GTEST_SKIP() << "too few requests in a second to know the new order by";
  SCOPED_TRACE(kSeed);
  Workload work(rate, sample, kObjects, kSeed);
  work.run(settle(rate));
  work.shift();
  work.run(kSecond / 2);
  work.reset();
  work.run(kSecond / 2);
  // At 10,000 a second, sampled, there are but 80 samples in half a second to go by.
  const double wanted = (rate >= 100'000 ? 0.8 : 0.6) - (sample == 1       ? 0
                                                         : rate >= 100'000 ? 0.1
                                                                           : 0.3);
  EXPECT_GE(work.hit_ratio(), wanted * best());
}

// One key turns hot among the others, on a node that is full.
TEST_P(AdmissionTest, AKeyTurningHotIsAdmittedWithinASecond) {
  const auto [rate, sample] = GetParam();
  SCOPED_TRACE(kSeed);
  // Of 100 requests a second a hot key can have but some; sampled, none is hot.
  if (rate < 1000 && sample > 1) GTEST_SKIP() << "one or two samples a second tell nothing";
  const double hot_rate = std::min(500.0, rate / 2);
  Workload work(rate, sample, kObjects, kSeed);
  work.run(settle(rate));
  std::vector<Nanos> times;
  for (uint64_t key = 1; key <= 20; ++key) {
    const Nanos start = work.now();
    while (!work.admission().holds(key) && work.now() < start + 5 * kSecond) {
      work.run(work.gap());
      const double chance = hot_rate * static_cast<double>(work.gap()) * 1e-9;
      if (work.random().unit() < chance) work.request(key);
    }
    times.push_back(work.now() - start);
    work.run(kSecond);
  }
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[10], 800 * kMillisecond);
  EXPECT_LT(times[17], kSecond);
}

INSTANTIATE_TEST_SUITE_P(Rates, AdmissionTest,
                         ::testing::Values(Case{100, 1}, Case{1000, 1}, Case{10'000, 1},
                                           Case{100'000, 1}, Case{100, 64}, Case{1000, 64},
                                           Case{10'000, 64}, Case{100'000, 64}),
                         [](const auto& param) {
                           return "rate" + std::to_string(static_cast<int>(param.param.rate)) +
                                  "sample" + std::to_string(param.param.sample);
                         });

TEST(Admission, ANodeWithRoomTakesAKeyAtItsSecondSample) {
  Admission admission({.objects = 10});
  EXPECT_FALSE(admission.observe(1, 64).admit);
  const auto decision = admission.observe(1, 64);
  EXPECT_TRUE(decision.admit);
  EXPECT_FALSE(decision.victim);
  EXPECT_FALSE(admission.observe(1, 1).admit);
  EXPECT_TRUE(admission.holds(1));
}

TEST(Admission, ANewcomerMustBeClearlyHotterThanTheColdest) {
  Admission admission({.objects = 3});
  for (const uint64_t key : {1, 2, 3}) {
    for (uint64_t i = 0; i < 100 * key; ++i) admission.observe(key, 1);
    admission.held(key, 10);
  }
  int seen = 0;
  Admission::Decision decision;
  while (!decision.admit && seen < 1000) {
    ++seen;
    decision = admission.observe(9, 1);
  }
  EXPECT_GT(seen, 125);
  EXPECT_LT(seen, 150);
  EXPECT_EQ(decision.victim, 1U);
  EXPECT_FALSE(admission.holds(1));
  // Nor does the victim come back at its next request.
  EXPECT_FALSE(admission.observe(1, 1).admit);
}

TEST(Admission, BytesAreBounded) {
  Admission admission({.bytes = 1000});
  for (uint64_t key = 1; key <= 5; ++key) {
    for (uint64_t i = 0; i < 10 * key; ++i) admission.observe(key, 1);
    EXPECT_TRUE(admission.holds(key));
    admission.held(key, 180);
  }
  EXPECT_EQ(admission.bytes(), 900U);
  EXPECT_FALSE(admission.expel());
  admission.held(5, 400);
  EXPECT_EQ(admission.expel(), 1U);
  EXPECT_FALSE(admission.expel());
  EXPECT_EQ(admission.bytes(), 940U);
  admission.dropped(5);
  admission.dropped(5);
  EXPECT_EQ(admission.bytes(), 540U);
  EXPECT_EQ(admission.objects(), 3U);
}

TEST(Admission, KeysNoLongerHotLeave) {
  Admission admission({.objects = 1000});
  for (uint64_t key = 1; key <= 500; ++key) {
    for (int i = 0; i < 4; ++i) admission.observe(key, 64);
    admission.held(key, 10);
  }
  Nanos now = kSecond;
  size_t gone = 0;
  while (gone < 500 && now < 60 * kSecond) {
    now += 50 * kMillisecond;
    admission.tick(now);
    while (admission.expel()) ++gone;
    for (int i = 0; i < 10'000; ++i) admission.observe(1'000'000, 1);
  }
  EXPECT_EQ(gone, 500U);
  EXPECT_EQ(admission.objects(), 1U);
  EXPECT_EQ(admission.hottest(5)[0].first, 1'000'000U);
}

TEST(Admission, HottestIsInOrder) {
  Admission admission({.objects = 100});
  for (uint64_t key = 1; key <= 50; ++key) {
    for (uint64_t i = 0; i < 10 * key; ++i) admission.observe(key, 1);
  }
  const auto top = admission.hottest(3);
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(top[0].first, 50U);
  EXPECT_EQ(top[2].first, 48U);
  EXPECT_EQ(admission.hottest(1000).size(), 50U);
}

}  // namespace
}  // namespace ballast::balance
