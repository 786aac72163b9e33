// SPDX-License-Identifier: Apache-2.0
#include "app/read_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>

namespace ballast::app {

Result<std::string> read_file(const std::string& path, size_t most_bytes) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return fail_errno("cannot be read", errno);
  std::string text;
  char buffer[16 * 1024];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, got);
    if (text.size() > most_bytes)
      return fail(ErrorCode::kLimit, "is larger than " + std::to_string(most_bytes >> 20) + "MiB");
  }
  if (std::ferror(file.get()) != 0) return fail_errno("cannot be read", errno);
  return text;
}

}  // namespace ballast::app
