// SPDX-License-Identifier: Apache-2.0
#include "app/lb_secret.h"

#include <fmt/format.h>

#include <cstdlib>

#include "app/read_file.h"

namespace ballast::app {
namespace {

constexpr size_t kLeast = 16;
constexpr const char* kVariable = "BALLAST_LB_SECRET";

}  // namespace

Result<std::string> lb_secret(const std::string& file) {
  std::string secret;
  std::string source = kVariable;
  if (!file.empty()) {
    source = "--secret-file " + file;
    auto text = read_file(file);
    if (!text) return fail(ErrorCode::kInvalid, source + ": " + text.error().message);
    secret = std::move(*text);
  } else if (const char* given = std::getenv(kVariable)) {
    secret = given;
  } else {
    return fail(ErrorCode::kInvalid,
                fmt::format("there is no secret: give --secret-file FILE, or {} in the environment",
                            kVariable));
  }
  while (secret.ends_with('\n') || secret.ends_with('\r')) secret.pop_back();
  if (secret.size() < kLeast)
    return fail(ErrorCode::kInvalid, fmt::format("{}: shorter than {} bytes", source, kLeast));
  return secret;
}

}  // namespace ballast::app
