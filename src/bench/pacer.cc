// SPDX-License-Identifier: Apache-2.0
#include "bench/pacer.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

namespace ballast::bench {

Result<std::unique_ptr<Pacer>> Pacer::create(io::Loop& loop, std::function<void()> call) {
  io::Fd fd(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!fd.valid()) return fail_errno("timerfd_create", errno);
  std::unique_ptr<Pacer> pacer(new Pacer(loop, std::move(fd), std::move(call)));
  if (const auto added = loop.add(pacer->fd_.get(), pacer.get()); !added)
    return Unexpected(added.error());
  return pacer;
}

Pacer::~Pacer() { loop_.remove(fd_.get()); }

void Pacer::wake_at(Nanos when) {
  when = std::max<Nanos>(when, 1);  // zero would switch the timer off
  itimerspec spec{};
  spec.it_value.tv_sec = when / kSecond;
  spec.it_value.tv_nsec = when % kSecond;
  timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Pacer::on_ready(uint32_t /*epoll_events*/) {
  uint64_t expirations = 0;
  if (::read(fd_.get(), &expirations, sizeof expirations) == sizeof expirations) call_();
}

}  // namespace ballast::bench
