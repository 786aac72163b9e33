// SPDX-License-Identifier: Apache-2.0
#include "lb/http_answer.h"

#include <gtest/gtest.h>

namespace ballast::lb {
namespace {

// In pieces of every size, as a socket may give them.
Result<std::string> read(const std::string& text, size_t piece, bool ends = false) {
  HttpAnswer answer(1000);
  std::string kept;
  for (size_t at = 0; at < text.size(); at += piece) {
    kept += text.substr(at, piece);
    const auto used = answer.take(kept);
    if (!used) return Unexpected(used.error());
    kept.erase(0, *used);
  }
  if (ends) {
    if (const auto end = answer.end(); !end) return Unexpected(end.error());
  }
  if (!answer.is_done()) return fail(ErrorCode::kState, "not done");
  return std::to_string(answer.status()) + (answer.keeps_connection() ? "+" : "-") + answer.body();
}

TEST(HttpAnswer, IsReadInPiecesOfAnySize) {
  const std::string sized = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nA: "
      "b\r\n\r\n";
  const std::string early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + sized;
  for (size_t piece = 1; piece < 120; ++piece) {
    EXPECT_EQ(read(sized, piece), "200+hello") << piece;
    EXPECT_EQ(read(chunked, piece), "200+hello") << piece;
    EXPECT_EQ(read(early, piece), "200+hello") << piece;
    EXPECT_EQ(read("HTTP/1.0 404 No\r\n\r\nhello", piece, true), "404-hello") << piece;
    EXPECT_EQ(read("HTTP/1.1 304 Same\r\n\r\n", piece), "304+") << piece;
    EXPECT_FALSE(read("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", piece, true)) << piece;
    EXPECT_FALSE(read("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", piece)) << piece;
    EXPECT_FALSE(read("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", piece)) << piece;
  }
  EXPECT_FALSE(read("", 1, true));
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\n\r\n" + std::string(1001, 'x'), 100).error().code,
            ErrorCode::kLimit);
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nA: " + std::string(20'000, 'x'), 100).error().code,
            ErrorCode::kLimit);
}

}  // namespace
}  // namespace ballast::lb
