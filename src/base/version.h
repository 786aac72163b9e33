// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ballast {

inline constexpr std::string_view kVersion = BALLAST_VERSION;

}  // namespace ballast
