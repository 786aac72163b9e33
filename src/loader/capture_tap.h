// SPDX-License-Identifier: Apache-2.0
// Reads the packets that the balancer's packet path draws for a capture, from another process, by
// the maps that are pinned. One capture at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "wire/lb.h"

namespace ballast::loader {

class CaptureTap {
 public:
  struct Options {
    std::string pins;         // folder of the pinned maps
    uint32_t one_in = 1;      // packets, drawn at random
    uint32_t length = 65535;  // most bytes of each
  };
  // Events of one CPU come in their order. `bytes` live until it returns.
  using OnEvent =
      std::function<void(int cpu, const bl_capture_event& event, std::span<const uint8_t> bytes)>;

  // From now on packets are drawn, until this object is gone. kState: no balancer has pinned its
  // maps there, or another capture runs.
  static Result<std::unique_ptr<CaptureTap>> open(const Options& options, OnEvent on_event);
  ~CaptureTap();

  // Hands on what there is, waits for it up to the timeout or a signal.
  Result<> poll(int timeout_ms);
  uint64_t lost() const;  // events for which there was no room

 private:
  class Impl;
  explicit CaptureTap(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::loader
