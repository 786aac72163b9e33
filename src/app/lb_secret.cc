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
constexpr size_t kMost = 4;  // an agent tries them all on what is forged
constexpr const char* kVariable = "BALLAST_LB_SECRET";

// What an editor may leave there unseen would make another secret.
const char* problem_of(const std::string& secret) {
  if (secret.size() < kLeast) return "shorter than 16 bytes";
  if (secret.starts_with("\xef\xbb\xbf")) return "begins with a byte order mark";
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  return is_blank(secret.front()) || is_blank(secret.back()) ? "begins or ends with a blank"
                                                             : nullptr;
}

}  // namespace

Result<std::vector<std::string>> lb_secrets(const std::string& file, const std::string& source) {
  std::string text;
  std::string place = kVariable;
  if (!file.empty()) {
    place = source + ": " + file;
    auto read = read_file(file);
    if (!read) return fail(ErrorCode::kInvalid, place + ": " + read.error().message);
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
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    if (const char* problem = problem_of(line))
      return fail(ErrorCode::kInvalid, fmt::format("{}: line {}: {}", place, number, problem));
    secrets.push_back(std::move(line));
  }
  if (secrets.empty()) return fail(ErrorCode::kInvalid, place + ": is empty");
  if (secrets.size() > kMost)
    return fail(ErrorCode::kInvalid, fmt::format("{}: more than {} secrets", place, kMost));
  return secrets;
}

}  // namespace ballast::app
