// SPDX-License-Identifier: Apache-2.0
#include "io/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"

namespace ballast::io {

Result<std::unique_ptr<Loop>> Loop::create() {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return fail_errno("epoll_create1", errno);
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return fail_errno("eventfd", errno);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = nullptr;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0)
    return fail_errno("epoll_ctl", errno);
  return std::unique_ptr<Loop>(new Loop(std::move(epoll), std::move(wake)));
}

Loop::Loop(Fd epoll, Fd wake)
    : epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      scratch_(std::make_unique_for_overwrite<char[]>(kScratchSize)) {}

Result<> Loop::add(int fd, Handler* handler) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = handler;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return fail_errno("epoll_ctl", errno);
  return {};
}

void Loop::remove(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Loop::again(Handler* handler, uint32_t epoll_events) {
  again_.emplace_back(handler, epoll_events);
}

Loop::Timer Loop::after(Nanos delay, std::function<void()> call) {
  const Timer timer{now_ns() + delay, next_timer_++};
  timers_.emplace(timer, std::move(call));
  return timer;
}

void Loop::post(std::function<void()> call) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(call));
  }
  const uint64_t one = 1;
  // The counter of an eventfd cannot overflow here; a full one means the loop wakes anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Loop::stop() { running_ = false; }

int Loop::wait_ms() const {
  if (!again_.empty()) return 0;
  if (timers_.empty()) return -1;
  const Nanos left = timers_.begin()->first.first - turn_;
  return static_cast<int>(
      std::clamp<Nanos>((left + kMillisecond - 1) / kMillisecond, 0, 1'000'000));
}

void Loop::run_timers() {
  turn_ = now_ns();
  while (!timers_.empty() && timers_.begin()->first.first <= turn_) {
    const auto call = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    call();
  }
}

void Loop::run_posted() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(posted_mutex_);
    calls.swap(posted_);
  }
  for (const auto& call : calls) call();
}

void Loop::end_turn() {
  // Deferred work may defer more; all of it belongs to this turn.
  for (size_t i = 0; i < deferred_.size(); ++i) {
    deferred_[i]->queued_ = false;
    deferred_[i]->on_turn_end();
  }
  deferred_.clear();
  while (!disposed_.empty()) {
    const auto gone = std::move(disposed_);
    disposed_.clear();
    for (const auto& object : gone)
      std::erase_if(again_, [&](const auto& entry) { return entry.first == object.get(); });
  }
}

void Loop::run() {
  BALLAST_CHECK(!running_);
  running_ = true;
  turn_ = now_ns();
  std::vector<epoll_event> events(512);
  std::vector<std::pair<Handler*, uint32_t>> repeated;
  while (running_) {
    const int count =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms());
    repeated.swap(again_);
    for (const auto& [handler, mask] : repeated) handler->on_ready(mask);
    repeated.clear();
    for (int i = 0; i < count; ++i) {
      if (events[i].data.ptr == nullptr) {
        run_posted();
      } else {
        static_cast<Handler*>(events[i].data.ptr)->on_ready(events[i].events);
      }
    }
    run_timers();
    end_turn();
  }
}

}  // namespace ballast::io
