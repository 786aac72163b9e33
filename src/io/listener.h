// SPDX-License-Identifier: Apache-2.0
// Accepts TCP connections on a loop.
#pragma once

#include <functional>
#include <memory>

#include "io/loop.h"
#include "io/socket.h"

namespace ballast::io {

class Listener final : public Loop::Handler {
 public:
  using Accept = std::function<void(Fd)>;
  static Result<std::unique_ptr<Listener>> create(Loop& loop, const Address& address,
                                                  Accept accept);
  ~Listener() override;

  Address address() const { return local_address(fd_.get()); }  // with the port the kernel chose
  void on_ready(uint32_t epoll_events) override;

 private:
  Listener(Loop& loop, Fd fd, Accept accept);
  Loop& loop_;
  Fd fd_;
  Accept accept_;
  bool out_of_descriptors_ = false;
  Loop::Timer retry_{};
};

}  // namespace ballast::io
