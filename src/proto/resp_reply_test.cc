// SPDX-License-Identifier: Apache-2.0
#include "proto/resp_reply.h"

#include <gtest/gtest.h>

#include <string>

namespace ballast::proto {
namespace {

// Where the first reply ends, -1 for an error, -2 for an unfinished reply.
long scan_pieces(std::string_view input, const std::vector<size_t>& cuts) {
  ReplyScanner scanner;
  size_t at = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const size_t until = i < cuts.size() ? cuts[i] : input.size();
    // A copy of exactly the piece, so that a sanitizer sees a read beyond it.
    const std::vector<char> piece(input.begin() + at, input.begin() + until);
    const Scan scan = scanner.scan({piece.data(), piece.size()});
    at += scan.consumed;
    if (scan.error) {
      EXPECT_FALSE(scan.complete);
      return -1;
    }
    if (scan.complete) {
      EXPECT_EQ(scanner.type(), input[0]);
      return static_cast<long>(at);
    }
    EXPECT_EQ(at, until);
  }
  return -2;
}

long scan_cut_everywhere(std::string_view input) {
  const long whole = scan_pieces(input, {});
  std::vector<size_t> each;
  for (size_t cut = 0; cut <= input.size(); ++cut) {
    EXPECT_EQ(scan_pieces(input, {cut}), whole) << "cut at " << cut;
    each.push_back(cut);
  }
  EXPECT_EQ(scan_pieces(input, each), whole);
  return whole;
}

TEST(ReplyScanner, WholeRepliesCutAtEveryByte) {
  const std::vector<std::string> replies = {
      "+OK\r\n",
      "+\r\n",
      "+a\nb\rc\r\n",
      "-ERR no\r\n",
      ":1\r\n",
      ":-9223372036854775808\r\n",
      ":+5\r\n",
      "$0\r\n\r\n",
      "$5\r\n\r\n\r\na\r\n",
      "$-1\r\n",
      "*-1\r\n",
      "*0\r\n",
      "*2\r\n$3\r\nabc\r\n*1\r\n:1\r\n",
      "_\r\n",
      "#t\r\n",
      "#f\r\n",
      ",1.5\r\n",
      ",inf\r\n",
      "(3492890328409238509324850943850943825024385\r\n",
      "!5\r\nERR x\r\n",
      "=8\r\ntxt:abcd\r\n",
      "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n",
      "~1\r\n+a\r\n",
      ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n",
      "|1\r\n+ttl\r\n:5\r\n$2\r\nok\r\n",
      "|0\r\n$2\r\nok\r\n",
      "*2\r\n|1\r\n+a\r\n:1\r\n:2\r\n:3\r\n",
      "*?\r\n:1\r\n*?\r\n.\r\n.\r\n",
      "%?\r\n+a\r\n:1\r\n.\r\n",
      "~?\r\n.\r\n",
      "$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n",
      "*1\r\n$?\r\n;0\r\n",
      "*3\r\n*0\r\n%0\r\n~0\r\n",
  };
  for (const std::string& reply : replies) {
    EXPECT_EQ(scan_cut_everywhere(reply), static_cast<long>(reply.size())) << reply;
    EXPECT_EQ(scan_cut_everywhere(reply + "+next"), static_cast<long>(reply.size())) << reply;
    EXPECT_EQ(scan_cut_everywhere(reply.substr(0, reply.size() - 1)), -2) << reply;
  }
}

TEST(ReplyScanner, HostileInputIsAnError) {
  const std::vector<std::string> replies = {
      "$-5\r\n",
      "$-2\r\n",
      "*-2\r\n",
      "%-1\r\n",
      "$1x\r\n",
      "$01\r\n",
      "$\r\n",
      "$1\n",
      "\r\n",
      "\n",
      "x\r\n",
      "$3\r\nabcd\r\n",
      "$3\r\nabc\rx",
      "=3\r\nabc\r\n",
      ":\r\n",
      ":1.5\r\n",
      ":9223372036854775808\r\n",
      ":+-5\r\n",
      "#x\r\n",
      "_x\r\n",
      "*99999999999999999999\r\n",
      "*9223372036854775807\r\n",
      "%9223372036854775807\r\n",
      "$9223372036854775807\r\n",
      ".\r\n",
      ";1\r\na\r\n",
      "*1\r\n.\r\n",
      "*1\r\n>1\r\n:1\r\n",
      "|1\r\n:1\r\n:1\r\n>1\r\n:1\r\n",
      "*?\r\n|1\r\n:1\r\n:1\r\n.\r\n",
      "*?\r\n|0\r\n.\r\n",
      "%?\r\n:1\r\n.\r\n",
      "$?\r\n+a\r\n",
      "$?\r\n.\r\n",
      "!?\r\n",
      ">?\r\n",
      ";?\r\n",
      ":" + std::string(100, '1') + "\r\n",
      "$" + std::string(100, '1'),
  };
  for (const std::string& reply : replies) EXPECT_EQ(scan_cut_everywhere(reply), -1) << reply;
}

TEST(ReplyScanner, LongAnnouncementsOnlyWait) {
  for (std::string reply : {"$2147483645\r\nabc", "*999999999\r\n:1\r\n", "%999999999\r\n",
                            "+no end", "(123", "*1\r\n$-1"}) {
    EXPECT_EQ(scan_cut_everywhere(reply), -2) << reply;
  }
  EXPECT_EQ(scan_pieces("+" + std::string(10'000'000, 'x') + "\r\n", {5'000'000}), 10'000'003);
}

TEST(ReplyScanner, NestingIsBounded) {
  std::string deep;
  for (size_t i = 0; i < kMaxScanDepth; ++i) deep += "*1\r\n";
  EXPECT_EQ(scan_pieces(deep + ":1\r\n", {}), static_cast<long>(deep.size() + 4));
  EXPECT_EQ(scan_pieces(deep + "*1\r\n:1\r\n", {}), -1);
}

TEST(ReplyScanner, StaysFailed) {
  ReplyScanner scanner;
  EXPECT_FALSE(scanner.scan("x").complete);
  EXPECT_TRUE(scanner.scan("\r\n+OK\r\n").error);
  EXPECT_TRUE(scanner.scan("+OK\r\n").error);
  scanner.reset();
  EXPECT_TRUE(scanner.scan("+OK\r\n").complete);
}

TEST(ReplyScanner, TypeNamesEachReplyOfAStream) {
  ReplyScanner scanner;
  std::string_view stream = "+OK\r\n>1\r\n:1\r\n$1\r\na\r\n|1\r\n:1\r\n:2\r\n:3\r\n";
  std::string types;
  while (!stream.empty()) {
    const Scan scan = scanner.scan(stream);
    ASSERT_TRUE(scan.complete);
    types += scanner.type();
    stream.remove_prefix(scan.consumed);
  }
  EXPECT_EQ(types, "+>$|");
}

}  // namespace
}  // namespace ballast::proto
