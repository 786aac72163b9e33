// SPDX-License-Identifier: Apache-2.0
// The program's version, from the root's CMakeLists.txt.
#pragma once

#include <string_view>

namespace ballast {

inline constexpr std::string_view kVersion = BALLAST_VERSION;

}  // namespace ballast
