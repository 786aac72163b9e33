// SPDX-License-Identifier: Apache-2.0
#include "app/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace ballast::app {

Signals::Signals(io::Fd fd, std::function<void(int)> on_signal)
    : fd_(std::move(fd)), on_signal_(std::move(on_signal)) {}

Result<std::unique_ptr<Signals>> Signals::watch(io::Loop& loop, std::initializer_list<int> signals,
                                                std::function<void(int signal)> on_signal) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  io::Fd fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd.valid()) return fail_errno("signalfd", errno);
  std::unique_ptr<Signals> watched(new Signals(std::move(fd), std::move(on_signal)));
  if (const auto added = loop.add(watched->fd_.get(), watched.get()); !added)
    return Unexpected(added.error());
  return watched;
}

void Signals::on_ready(uint32_t /*epoll_events*/) {
  signalfd_siginfo info;
  while (read(fd_.get(), &info, sizeof(info)) == sizeof(info))
    on_signal_(static_cast<int>(info.ssi_signo));
}

}  // namespace ballast::app
