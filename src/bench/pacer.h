// SPDX-License-Identifier: Apache-2.0
// Calls back at given instants, finer than the loop's milliseconds (a timerfd): an open loop must
// send when a request is due.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "io/fd.h"
#include "io/loop.h"

namespace ballast::bench {

class Pacer final : public io::Loop::Handler {
 public:
  static Result<std::unique_ptr<Pacer>> create(io::Loop& loop, std::function<void()> call);
  ~Pacer() override;

  void wake_at(Nanos when);  // replaces the former instant; a past one is at once
  void on_ready(uint32_t epoll_events) override;

 private:
  Pacer(io::Loop& loop, io::Fd fd, std::function<void()> call)
      : loop_(loop), fd_(std::move(fd)), call_(std::move(call)) {}

  io::Loop& loop_;
  io::Fd fd_;
  std::function<void()> call_;
};

}  // namespace ballast::bench
