// SPDX-License-Identifier: Apache-2.0
#include "telemetry/progress.h"

#include <unistd.h>

namespace ballast::telemetry {

Progress::Progress() : Progress(stderr, isatty(STDERR_FILENO) == 1) {}

void Progress::report(Nanos now, std::string_view line) {
  if (next_ == 0 && !terminal_) next_ = now + 10 * kSecond;  // a short job says nothing to a file
  if (now < next_) return;
  next_ = now + (terminal_ ? kSecond / 4 : 10 * kSecond);
  const std::string_view start = terminal_ ? "\r\x1b[K" : "";
  const std::string_view end = terminal_ ? "" : "\n";
  std::fprintf(out_, "%.*s%.*s%.*s", static_cast<int>(start.size()), start.data(),
               static_cast<int>(line.size()), line.data(), static_cast<int>(end.size()),
               end.data());
  std::fflush(out_);
  shown_ = terminal_;
}

void Progress::finish() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
  shown_ = false;
}

}  // namespace ballast::telemetry
