// SPDX-License-Identifier: Apache-2.0
#include "app/lb_secret.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>
#include <utility>

#include "app/read_file.h"

namespace ballast::app {
namespace {

constexpr size_t kLeast = 16;
constexpr const char* kVariable = "BALLAST_LB_SECRET";

}  // namespace

Result<std::vector<std::string>> lb_secrets(const std::string& file) {
  std::string text;
  std::string source = kVariable;
  if (!file.empty()) {
    source = "--secret-file " + file;
    auto read = read_file(file);
    if (!read) return fail(ErrorCode::kInvalid, source + ": " + read.error().message);
    text = std::move(*read);
  } else if (const char* given = std::getenv(kVariable)) {
    text = given;
  } else {
    return fail(ErrorCode::kInvalid,
                fmt::format("there is no secret: give --secret-file FILE, or {} in the environment",
                            kVariable));
  }
  std::vector<std::string> secrets;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    while (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    if (line.size() < kLeast)
      return fail(ErrorCode::kInvalid, fmt::format("{}: shorter than {} bytes", source, kLeast));
    secrets.push_back(std::move(line));
  }
  if (secrets.empty()) return fail(ErrorCode::kInvalid, source + ": is empty");
  return secrets;
}

}  // namespace ballast::app
