// SPDX-License-Identifier: Apache-2.0
#include "loader/capture.h"

#include "loader/lb_fixture.h"

namespace ballast::loader {
namespace {

struct Shown {
  bl_capture_event event;
  Bytes bytes;
};

class CaptureTest : public LbTest {
 protected:
  void open(const CaptureSettings& settings) {
    auto opened = Capture::open(
        *program_, settings, [this](const bl_capture_event& event, std::span<const uint8_t> bytes) {
          shown_.push_back({event, Bytes(bytes.begin(), bytes.end())});
        });
    ASSERT_TRUE(opened) << opened.error().message;
    capture_ = std::move(*opened);
  }

  std::vector<Shown> shown_;
  std::unique_ptr<Capture> capture_;
};

TEST_F(CaptureTest, APacketIsShownAsItCameAndAsItLeft) {
  set_instance(0, instance(BL_METHOD_IPIP), "10.0.0.1");
  const Bytes in = packet4(tcp(kSyn));
  run(in);
  open({.one_in = 1, .length = 2000});
  const TestRun done = run(in);
  ASSERT_TRUE(capture_->poll(0));
  ASSERT_EQ(shown_.size(), 2U) << "nothing was shown while the tap was off";
  EXPECT_EQ(shown_[0].bytes, in);
  EXPECT_EQ(shown_[1].bytes, done.packet);
  const auto& [came, left] = std::pair(shown_[0].event, shown_[1].event);
  EXPECT_EQ(came.number, left.number);
  EXPECT_LE(came.time_ns, left.time_ns);
  EXPECT_EQ(came.has_left, 0);
  EXPECT_EQ(came.instance, uint32_t{BL_MOST_INSTANCES});
  EXPECT_EQ(left.has_left, 1);
  EXPECT_EQ(left.action, XDP_TX);
  EXPECT_EQ(left.instance, 0U);
  EXPECT_EQ(left.counter, uint32_t{BL_EVENT_newcomer});
  EXPECT_EQ(left.length, in.size() + 20);
  EXPECT_EQ(left.ifindex, came.ifindex);
  capture_.reset();
  run(in);
  EXPECT_EQ((*program_->settings().get(0))->capture_one_in, 0U);
}

TEST_F(CaptureTest, ADropSaysWhy) {
  open({.one_in = 1, .length = 20});
  Bytes broken = packet4(tcp(kSyn));
  broken[46] = 0x40;
  run(broken);
  run(packet4(tcp(kSyn, 1, 81)));
  ASSERT_TRUE(capture_->poll(0));
  ASSERT_EQ(shown_.size(), 4U);
  EXPECT_EQ(shown_[1].event.action, XDP_DROP);
  EXPECT_EQ(shown_[1].event.counter, uint32_t{BL_DROP_malformed});
  EXPECT_EQ(shown_[1].event.instance, uint32_t{BL_MOST_INSTANCES});
  EXPECT_EQ(shown_[1].bytes.size(), 20U);
  EXPECT_EQ(shown_[1].event.length, broken.size());
  EXPECT_EQ(shown_[3].event.action, XDP_PASS);
  EXPECT_EQ(shown_[3].event.counter, uint32_t{BL_EVENT_passed});
}

TEST_F(CaptureTest, OneInSoManyIsDrawn) {
  open({.one_in = 10, .length = 14});
  for (int i = 0; i < 2000; ++i) {
    run(packet4(tcp(kSyn)));
    ASSERT_TRUE(i % 100 != 0 || capture_->poll(0));
  }
  ASSERT_TRUE(capture_->poll(0));
  EXPECT_NEAR(static_cast<double>(shown_.size()) / 2, 200, 70);
  EXPECT_EQ(capture_->lost(), 0U);
}

}  // namespace
}  // namespace ballast::loader
