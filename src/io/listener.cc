// SPDX-License-Identifier: Apache-2.0
#include "io/listener.h"

#include <sys/epoll.h>

#include <cerrno>

#include "base/log.h"

namespace ballast::io {

Result<std::unique_ptr<Listener>> Listener::create(Loop& loop, const Address& address,
                                                   Accept accept) {
  auto fd = listen_tcp(address);
  if (!fd) return Unexpected(fd.error());
  std::unique_ptr<Listener> listener(new Listener(loop, std::move(*fd), std::move(accept)));
  const auto added = loop.add(listener->fd_.get(), listener.get());
  if (!added) return Unexpected(added.error());
  return listener;
}

Listener::Listener(Loop& loop, Fd fd, Accept accept)
    : loop_(loop), fd_(std::move(fd)), accept_(std::move(accept)) {}

Listener::~Listener() {
  loop_.cancel(retry_);
  if (fd_.valid()) loop_.remove(fd_.get());
}

void Listener::on_ready(uint32_t /*epoll_events*/) {
  for (int i = 0; i < 256; ++i) {
    Fd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      out_of_descriptors_ = false;
      set_no_delay(fd.get());
      accept_(std::move(fd));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    if (!out_of_descriptors_) log_warning("accept on {}: errno {}", address().text(), errno);
    out_of_descriptors_ = true;
    retry_ = loop_.after(100 * kMillisecond, [this] { on_ready(EPOLLIN); });
    return;
  }
  loop_.again(this, EPOLLIN);
}

}  // namespace ballast::io
