// SPDX-License-Identifier: Apache-2.0
// Maps that live on in a BPF file system, and walks through them in steps.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "loader/lb_fixture.h"
#include "loader/pins.h"

namespace ballast::loader {
namespace {

class PinsTest : public LbTest {
 protected:
  void SetUp() override {
    folder_ = "/sys/fs/bpf/ballast-test-" + std::to_string(getpid());
    const auto made = make_pins(folder_);
    if (!made) GTEST_SKIP() << made.error().message;
    load(settings(1024));
  }
  void TearDown() override {
    program_.reset();
    std::filesystem::remove(folder_ + "/other");
    EXPECT_TRUE(remove_pins(folder_));
    std::filesystem::remove(folder_);
  }
  LbSettings settings(uint32_t connections) const {
    LbSettings made{.hash_seed = kSeed, .connections = connections};
    made.pins = folder_;
    return made;
  }

  std::string folder_;
};

TEST_F(PinsTest, ConnectionsOutliveTheProgram) {
  ASSERT_GE(instance_of(packet4(tcp(kSyn))), 0);
  ASSERT_EQ(instance_of(packet4(tcp(kAck))), 0);
  program_.reset();
  EXPECT_EQ(pinned_seed(folder_), kSeed);
  auto again = LbProgram::load(settings(1024));
  ASSERT_TRUE(again) << again.error().message;
  program_ = std::make_unique<LbProgram>(std::move(*again));
  set_table(0, {0, 1, 0, 0});
  EXPECT_EQ(instance_of(packet4(tcp(kAck))), 0) << "a known one stays";
  EXPECT_EQ(instance_of(packet4(tcp(kSyn, 40'001))), 1) << "a new one goes by the table";
}

// The flows' sets are other ones then.
TEST_F(PinsTest, WithAnotherSeedAPortThatIsUsedAgainStaysWithItsConnection) {
  ASSERT_GE(instance_of(packet4(tcp(kSyn))), 0);
  ASSERT_EQ(instance_of(packet4(tcp(kAck))), 0);
  for (const uint64_t seed : {kSeed + 1, kSeed + 2}) {
    program_.reset();
    LbSettings other = settings(1024);
    other.hash_seed = seed;
    auto again = LbProgram::load(other);
    ASSERT_TRUE(again) << again.error().message;
    program_ = std::make_unique<LbProgram>(std::move(*again));
    set_table(0, {0, 1, 0, 0});
    EXPECT_EQ(instance_of(packet4(tcp(kSyn))), 0);
  }
}

TEST_F(PinsTest, MapsOfAnotherLayoutAreRefused) {
  ASSERT_TRUE(program_->seed().set(1, 12345));
  const auto other = LbProgram::load(settings(1024));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kState);
  EXPECT_NE(other.error().message.find(folder_), std::string::npos);
}

TEST_F(PinsTest, MapsOfAnotherSizeAreRefusedAndCanBeGivenUp) {
  const auto other = LbProgram::load(settings(2048));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kState);
  EXPECT_NE(other.error().message.find(folder_ + "/connections"), std::string::npos);
  ASSERT_EQ(mkdir((folder_ + "/other").c_str(), 0700), 0);
  ASSERT_TRUE(remove_pins(folder_));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/other")) << "what is not ours stays";
  EXPECT_TRUE(LbProgram::load(settings(2048)));
}

TEST_F(PinsTest, PinsElsewhereAreRefused) {
  LbSettings elsewhere = settings(1024);
  elsewhere.pins = testing::TempDir() + "pins";
  const auto program = LbProgram::load(elsewhere);
  ASSERT_FALSE(program);
  EXPECT_NE(program.error().message.find("not in a BPF file system"), std::string::npos);
}

TEST_F(PinsTest, AWalkInStepsSeesEveryConnection) {
  for (uint16_t port = 1; port <= 700; ++port) {
    ASSERT_GE(instance_of(packet4(tcp(kSyn, port))), 0);
    ASSERT_GE(instance_of(packet4(tcp(kAck, port))), 0);
  }
  std::set<uint16_t> seen;
  std::optional<uint32_t> place;
  int steps = 0;
  do {
    const auto stepped = program_->connections().step(
        place, 100,
        [&](const bl_flow_key& key, const bl_connection&) { seen.insert(key.source_port_be); });
    ASSERT_TRUE(stepped) << stepped.error().message;
  } while (++steps < 100 && place);
  EXPECT_EQ(seen.size(), 700U);
  EXPECT_GE(steps, 7);
}

}  // namespace
}  // namespace ballast::loader
