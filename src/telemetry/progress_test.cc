// SPDX-License-Identifier: Apache-2.0
#include "telemetry/progress.h"

#include <gtest/gtest.h>

namespace ballast::telemetry {
namespace {

std::string written(FILE* file) {
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

TEST(Progress, OnATerminalOneLineIsRewrittenAndCleared) {
  FILE* file = std::tmpfile();
  {
    Progress progress(file, true);
    for (int i = 0; i < 10; ++i) progress.report(kSecond + i * 50 * kMillisecond, "step");
  }
  EXPECT_EQ(written(file), "\r\x1b[Kstep\r\x1b[Kstep\r\x1b[K");
  std::fclose(file);
}

TEST(Progress, ElsewhereALineEveryTenSeconds) {
  FILE* file = std::tmpfile();
  {
    Progress progress(file, false);
    for (int i = 0; i < 25; ++i) progress.report((1 + i) * kSecond, std::to_string(i));
  }
  EXPECT_EQ(written(file), "10\n20\n");
  std::fclose(file);
}

}  // namespace
}  // namespace ballast::telemetry
