// SPDX-License-Identifier: Apache-2.0
// Signals as events of a loop.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>

#include "base/result.h"
#include "io/loop.h"

namespace ballast::app {

class Signals final : public io::Loop::Handler {
 public:
  // From now on these signals do nothing but call `on_signal` on the loop.
  static Result<std::unique_ptr<Signals>> watch(io::Loop& loop, std::initializer_list<int> signals,
                                                std::function<void(int signal)> on_signal);
  void on_ready(uint32_t epoll_events) override;

 private:
  Signals(io::Fd fd, std::function<void(int)> on_signal);
  io::Fd fd_;
  std::function<void(int)> on_signal_;
};

}  // namespace ballast::app
