// SPDX-License-Identifier: Apache-2.0
// What this program was built from and by; static text.
#pragma once

namespace ballast::telemetry {

struct BuildInfo {
  const char* version;   // "0.1.0"
  const char* compiler;  // "gcc 12.2.0"
  const char* type;      // CMake's build type
};

const BuildInfo& build_info();

}  // namespace ballast::telemetry
