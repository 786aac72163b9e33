// SPDX-License-Identifier: Apache-2.0
// How far a long job is, on stderr: one line rewritten on a terminal, else a line every ten
// seconds.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace ballast::telemetry {

class Progress {
 public:
  Progress();  // stderr, and whether it is a terminal
  Progress(FILE* out, bool terminal) : out_(out), terminal_(terminal) {}
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // May be called as often as is handy; shows at most four lines a second on a terminal.
  void report(Nanos now, std::string_view line);
  void finish();  // clears the rewritten line; results may follow

 private:
  FILE* out_;
  bool terminal_;
  bool shown_ = false;
  Nanos next_ = 0;
};

}  // namespace ballast::telemetry
