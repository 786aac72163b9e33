// SPDX-License-Identifier: Apache-2.0
// Reads the tap of a packet path that runs, in this process or another: some packets as they came
// and as they left (struct bl_capture_event).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "loader/lb_program.h"

namespace ballast::loader {

struct CaptureSettings {
  uint32_t one_in = 1;   // of how many packets one is shown, above 0
  uint32_t length = 96;  // most bytes of each, from the Ethernet header on
};

// The tap is on while this object lives. One reader at a time: a second one takes the packets of
// the first.
class Capture {
 public:
  // `bytes` are event.captured of the packet, valid during the call.
  using Visit = std::function<void(const bl_capture_event& event, std::span<const uint8_t> bytes)>;

  // Of the balancer whose maps are pinned in the folder `pins`; kSystem with ENOENT if none runs.
  static Result<std::unique_ptr<Capture>> open(const std::string& pins,
                                               const CaptureSettings& settings, Visit visit);
  static Result<std::unique_ptr<Capture>> open(const LbProgram& program,
                                               const CaptureSettings& settings, Visit visit);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Waits for packets, no longer than that, and visits those that came; 0 does not wait. kState:
  // other tables are pinned there by now, so none will come any more.
  Result<> poll(uint32_t timeout_ms);
  uint64_t lost() const { return lost_; }  // events for which the ring had no room

 private:
  struct Ring;
  Capture(int settings_fd, Visit visit);
  bool is_current() const;
  static Result<std::unique_ptr<Capture>> open(int settings_fd, int captured_fd,
                                               const CaptureSettings& settings, Visit visit);

  int settings_fd_;
  int captured_fd_ = -1;  // if opened here
  std::string pins_;      // likewise
  Visit visit_;
  uint64_t lost_ = 0;
  std::unique_ptr<Ring> ring_;
};

}  // namespace ballast::loader
