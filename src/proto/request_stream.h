// SPDX-License-Identifier: Apache-2.0
// Commands out of what a client sent, as captured: where bytes are missing or make no sense it goes
// on at the next thing that looks like a command. Memory is bounded: large arguments are dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "proto/resp_command.h"

namespace ballast::proto {

class RequestStream {
 public:
  using Command = std::function<void(std::span<const std::string_view> args)>;

  // An argument larger than this comes out empty.
  static constexpr size_t kMostArgument = size_t{64} * 1024;
  // A command larger than this, apart from such arguments, is left out.
  static constexpr size_t kMostCommand = size_t{4} * 1024 * 1024;

  RequestStream();

  // The next byte is the first of a connection: inline commands are taken too.
  void start();
  // Bytes are missing.
  void gap();
  void bytes(std::string_view data, const Command& command);

  size_t held() const { return buffer_.size(); }
  // How often it had to look for the next command, but for start().
  uint64_t losses() const { return losses_; }

 private:
  void parse(const Command& command);
  void drop_large_argument();
  bool find_start();
  void forget(bool in_step);

  CommandParser parser_;
  std::string buffer_;
  size_t skip_ = 0;       // bytes of a dropped argument still to come
  bool in_step_ = false;  // the buffer begins with a command
  uint64_t losses_ = 0;
};

}  // namespace ballast::proto
