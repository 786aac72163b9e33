// SPDX-License-Identifier: Apache-2.0
// How much processor time an instance uses and may use: of a control group (version 1 or 2), or of
// the whole host.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace ballast::lb {

struct CpuReading {
  Nanos used = 0;    // since some beginning
  double cores = 0;  // that may be used at once
};

class CpuMeter {
 public:
  static Result<CpuMeter> of_host();
  // `group` as in /proc/PID/cgroup, e.g. "/system.slice/nginx.service"; `root` is where the groups
  // are mounted. The error names the files looked for.
  static Result<CpuMeter> of_group(const std::string& group,
                                   const std::string& root = "/sys/fs/cgroup");

  Result<CpuReading> read() const;

 private:
  enum class Kind : uint8_t { kHost, kVersion1, kVersion2 };
  explicit CpuMeter(Kind kind) : kind_(kind) {}

  Kind kind_;
  std::string usage_;   // the file that tells it
  std::string limit_;   // of version 2
  std::string quota_;   // of version 1
  std::string period_;  // of version 1
};

// What the files say; fail if they say something else.
Result<CpuReading> parse_host_stat(std::string_view stat, long ticks_per_second);
Result<Nanos> parse_group_stat(std::string_view stat);                // cpu.stat of version 2
Result<double> parse_group_limit(std::string_view max, double host);  // cpu.max of version 2

}  // namespace ballast::lb
