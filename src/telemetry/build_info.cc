// SPDX-License-Identifier: Apache-2.0
// The macros come from this folder's CMakeLists.txt and reach no other file.
#include "telemetry/build_info.h"

namespace ballast::telemetry {

const BuildInfo& build_info() {
  static const BuildInfo info{BALLAST_VERSION, BALLAST_COMPILER, BALLAST_BUILD_TYPE};
  return info;
}

}  // namespace ballast::telemetry
