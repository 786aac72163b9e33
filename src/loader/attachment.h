// SPDX-License-Identifier: Apache-2.0
// A kernel program on an interface.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace ballast::loader {

enum class AttachMode { kNative, kGeneric };

// One attachment to an interface (a bpf_link's descriptor); ends with this object.
class Attachment {
 public:
  Attachment() = default;
  explicit Attachment(int fd) : fd_(fd) {}
  Attachment(Attachment&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Attachment& operator=(Attachment&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Attachment();

  // Stays attached when this object is gone, until the file is removed.
  Result<> pin(const std::string& path) const;
  // At once, whoever else holds it.
  void detach() const;

 private:
  int fd_ = -1;
};

// kState: there is a program already.
Result<Attachment> attach(int program, uint32_t ifindex, AttachMode mode);

// Puts the program in the place of the one that a pinned attachment runs; no packet passes without
// one of them. Nothing if none is pinned, or if its interface went. kState: it is another
// interface's, and nothing has changed.
Result<std::optional<Attachment>> take_over(int program, uint32_t ifindex, const std::string& path);

// Whether the interface's program runs in its driver.
bool is_native(uint32_t ifindex);

}  // namespace ballast::loader
