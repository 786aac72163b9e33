// SPDX-License-Identifier: Apache-2.0
// One thread's event loop: edge-triggered epoll, timers, work posted from other threads, and work
// done once at the end of a turn, so that everything a turn wrote to a socket leaves in one send.
// See docs/adr/0001-own-event-loop.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "io/fd.h"

namespace ballast::io {

class Loop {
 public:
  // What may still be referred to until the end of a turn.
  class Disposable {
   public:
    virtual ~Disposable() = default;
  };
  // Gets a descriptor's events. Must stay alive until the end of the turn in which it was removed:
  // use dispose().
  class Handler : public Disposable {
   public:
    virtual void on_ready(uint32_t epoll_events) = 0;
  };
  // Work to be done once at the end of the turn.
  class Deferred {
   public:
    virtual ~Deferred() = default;
    virtual void on_turn_end() = 0;

   private:
    friend class Loop;
    bool queued_ = false;
  };
  using Timer = std::pair<Nanos, uint64_t>;

  static Result<std::unique_ptr<Loop>> create();

  void run();   // until stop()
  void stop();  // from the loop's thread

  // Registers for input, output and hang-up, edge-triggered, for as long as fd is open.
  Result<> add(int fd, Handler* handler);
  void remove(int fd);
  // As if `handler` had got these events in the next turn.
  void again(Handler* handler, uint32_t epoll_events);
  void defer(Deferred* work) {
    if (work->queued_) return;
    work->queued_ = true;
    deferred_.push_back(work);
  }
  // Destroys the object after this turn's events and deferred work.
  void dispose(std::unique_ptr<Disposable> object) { disposed_.push_back(std::move(object)); }

  Timer after(Nanos delay, std::function<void()> call);
  void cancel(Timer timer) { timers_.erase(timer); }
  void post(std::function<void()> call);  // from any thread

  // Room for one read, shared by all handlers of the loop; its content ends with the handler's
  // call.
  static constexpr size_t kScratchSize = 64 * 1024;
  char* scratch() { return scratch_.get(); }

 private:
  Loop(Fd epoll, Fd wake);
  int wait_ms() const;
  void run_timers();
  void run_posted();
  void end_turn();

  Fd epoll_;
  Fd wake_;
  bool running_ = false;
  Nanos turn_ = 0;  // when this turn's timers were looked at
  uint64_t next_timer_ = 0;
  std::map<Timer, std::function<void()>> timers_;
  std::vector<Deferred*> deferred_;
  std::vector<std::pair<Handler*, uint32_t>> again_;
  std::vector<std::unique_ptr<Disposable>> disposed_;
  std::unique_ptr<char[]> scratch_;
  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;
};

}  // namespace ballast::io
