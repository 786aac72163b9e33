// SPDX-License-Identifier: Apache-2.0
#include "lb/capture_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace ballast::lb {
namespace {

io::Fd open_folder(const std::string& pins) {
  return io::Fd(open(pins.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool try_lock(const io::Fd& folder) { return flock(folder.get(), LOCK_EX | LOCK_NB) == 0; }

}  // namespace

Result<io::Fd> lock_capture(const std::string& pins) {
  io::Fd folder = open_folder(pins);
  if (!folder.valid())
    return fail(ErrorCode::kState,
                pins + ": no balancer has its tables there (" + std::strerror(errno) + ")");
  // The balancer may be looking whether the former reader is gone; that takes microseconds.
  constexpr int kTries = 10;
  for (int i = 0; i < kTries; ++i) {
    if (try_lock(folder)) return folder;
    usleep(10'000);
  }
  return fail(ErrorCode::kState, pins + ": another capture runs");
}

Result<> end_lost_capture(const loader::LbProgram& program, const std::string& pins) {
  const auto settings = program.settings().get(0);
  if (!settings) return Unexpected(settings.error());
  if (!*settings || (**settings).capture_one_in == 0) return {};
  const io::Fd folder = open_folder(pins);
  if (!folder.valid() || !try_lock(folder)) return {};
  log_info("the reader of the tap is gone; it is off");
  return program.settings().set(0, {});
}

}  // namespace ballast::lb
