// SPDX-License-Identifier: Apache-2.0
// Words for the operator, on stderr. Never per request or packet; never a key or a secret.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace ballast {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

void log_set_level(LogLevel level);
void log_write(LogLevel level, std::string_view message);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_write(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_write(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_write(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_write(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ballast
