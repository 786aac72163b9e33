// SPDX-License-Identifier: Apache-2.0
#include "io/loop.h"

#include <gtest/gtest.h>

#include <thread>

namespace ballast::io {
namespace {

TEST(Loop, TimersRunInOrderAndCancelledOnesDoNot) {
  auto loop = std::move(*Loop::create());
  std::string order;
  loop->after(20 * kMillisecond, [&] { order += 'b'; });
  loop->after(10 * kMillisecond, [&] { order += 'a'; });
  const auto cancelled = loop->after(15 * kMillisecond, [&] { order += 'x'; });
  loop->cancel(cancelled);
  loop->after(30 * kMillisecond, [&] { loop->stop(); });
  loop->run();
  EXPECT_EQ(order, "ab");
}

TEST(Loop, PostedWorkRunsOnTheLoopsThread) {
  auto loop = std::move(*Loop::create());
  std::thread::id ran;
  std::thread other([&] {
    loop->post([&] {
      ran = std::this_thread::get_id();
      loop->stop();
    });
  });
  loop->run();
  other.join();
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST(Loop, DeferredWorkRunsOncePerTurn) {
  struct Count : Loop::Deferred {
    void on_turn_end() override { ++count; }
    int count = 0;
  } work;
  auto loop = std::move(*Loop::create());
  loop->after(0, [&] {
    loop->defer(&work);
    loop->defer(&work);
  });
  loop->after(5 * kMillisecond, [&] { loop->stop(); });
  loop->run();
  EXPECT_EQ(work.count, 1);
}

}  // namespace
}  // namespace ballast::io
