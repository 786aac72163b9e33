// SPDX-License-Identifier: Apache-2.0
#include "bench/verifier.h"

#include <gtest/gtest.h>

#include <string>

#include "bench/value.h"

namespace ballast::bench {
namespace {

constexpr uint32_t kRun = 77;

class VerifierTest : public testing::Test {
 protected:
  void write(uint32_t key) { verifier_.acknowledge(key, verifier_.begin_write(key)); }

  static std::string value(uint32_t key, uint32_t number, uint32_t run = kRun) {
    std::string out;
    append_value(out, {key, run, 0, number, 64});
    return out;
  }
  Finding read(uint32_t key, ReadMark mark, const std::string& text, bool own = false) {
    return verifier_.check({key, key, mark, own, text});
  }
  Finding read_null(uint32_t key, ReadMark mark, bool own = false) {
    return verifier_.check({key, key, mark, own, std::nullopt});
  }

  Verifier verifier_{10, kRun};
};

TEST_F(VerifierTest, AReadReturnsWhatWasAcknowledgedBeforeItOrLater) {
  write(3);
  write(3);
  const ReadMark mark = verifier_.begin_read(3);
  EXPECT_EQ(read(3, mark, value(3, 2)), Finding::kGood);
  EXPECT_EQ(read(3, mark, value(3, 1)), Finding::kStale);
  EXPECT_EQ(read_null(3, mark), Finding::kLost);
  write(3);
  EXPECT_EQ(read(3, mark, value(3, 3)), Finding::kGood);
  EXPECT_EQ(verifier_.violations(), 2U);
}

TEST_F(VerifierTest, AnUnacknowledgedWriteMayBeSeenOrNotButNotUnseen) {
  write(1);
  verifier_.begin_write(1);
  const ReadMark before = verifier_.begin_read(1);
  EXPECT_EQ(read(1, before, value(1, 1)), Finding::kGood);
  EXPECT_EQ(read(1, before, value(1, 2)), Finding::kGood);
  EXPECT_EQ(read(1, before, value(1, 1)), Finding::kGood);  // began before the 2 was seen
  EXPECT_EQ(read(1, verifier_.begin_read(1), value(1, 1)), Finding::kStale);
}

TEST_F(VerifierTest, OtherKeysAndValuesNeverWrittenAreForeign) {
  write(1);
  write(2);
  const ReadMark mark = verifier_.begin_read(1);
  EXPECT_EQ(read(1, mark, value(2, 1)), Finding::kForeign);
  EXPECT_EQ(read(1, mark, value(1, 2)), Finding::kForeign);
  EXPECT_EQ(read(1, mark, "x"), Finding::kForeign);
}

TEST_F(VerifierTest, AnotherRunsValueIsOldButGoodBeforeTheFirstWrite) {
  EXPECT_EQ(read(4, verifier_.begin_read(4), value(4, 900, 1)), Finding::kGood);
  EXPECT_EQ(read_null(4, verifier_.begin_read(4)), Finding::kGood);
  write(4);
  EXPECT_EQ(read(4, verifier_.begin_read(4), value(4, 900, 1)), Finding::kStale);
}

TEST_F(VerifierTest, TheWritersConnectionSeesItsOwnOrder) {
  const uint32_t first = verifier_.begin_write(5);
  const ReadMark mark = verifier_.begin_read(5);  // pipelined behind the write
  const uint32_t second = verifier_.begin_write(5);
  verifier_.acknowledge(5, first);
  EXPECT_EQ(read_null(5, mark, true), Finding::kLost);
  EXPECT_EQ(read(5, mark, value(5, 0, 1), true), Finding::kOutOfOrder);
  EXPECT_EQ(read(5, mark, value(5, second), true), Finding::kOutOfOrder);
  EXPECT_EQ(read(5, mark, value(5, first), true), Finding::kGood);
}

TEST_F(VerifierTest, AfterAnUnknownOutcomeNothingIsAskedButTheRightKey) {
  write(6);
  verifier_.begin_write(6);
  verifier_.abandon(6);
  EXPECT_EQ(read(6, verifier_.begin_read(6), value(6, 1)), Finding::kGood);
  EXPECT_EQ(read(6, verifier_.begin_read(6), value(7, 1)), Finding::kForeign);
  EXPECT_EQ(verifier_.unsure_keys(), 1U);
}

}  // namespace
}  // namespace ballast::bench
