// SPDX-License-Identifier: Apache-2.0
// Laws between writer, tree, scanner and downgrade, on random values and random cuts.
#include "proto/resp_value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "proto/resp_convert.h"
#include "proto/resp_reply.h"
#include "proto/resp_write.h"

namespace ballast::proto {
namespace {

std::string random_text(Random& random, bool binary) {
  std::string text(random.below(20) == 0 ? random.below(2000) : random.below(10), '\0');
  for (char& byte : text) {
    byte = binary ? "\r\n$*:|_.;?a\0"[random.below(12)] : "ab c*$-1"[random.below(8)];
  }
  return text;
}

Value random_value(Random& random, int depth, bool top) {
  const std::string_view types = depth > 0 ? "+-:$*_#,(!=%~>" : "+-:$_#,(!=";
  Value value;
  value.type = types[random.below(types.size())];
  if (value.type == '>' && !top) value.type = '*';
  value.null =
      value.type == '_' || ((value.type == '$' || value.type == '*') && random.below(8) == 0);
  if (depth > 0 && value.type != '>' && random.below(8) == 0) {
    const size_t pairs = random.below(3);
    for (size_t i = 0; i < 2 * pairs; ++i) {
      value.attributes.push_back(random_value(random, depth - 1, false));
    }
  }
  if (value.null) return value;
  switch (value.type) {
    case '+':
    case '-':
    case '(':
      value.string = random_text(random, false);
      break;
    case '$':
    case '!':
      value.string = random_text(random, true);
      break;
    case '=':
      value.string = "txt:" + random_text(random, true);
      break;
    case ':':
      value.integer = static_cast<int64_t>(random.next() >> random.below(64));
      break;
    case '#':
      value.integer = static_cast<int64_t>(random.below(2));
      break;
    case ',': {
      value.number = (random.unit() - 0.5) * std::pow(10.0, static_cast<double>(random.below(40)));
      std::string text;
      append_double(text, value.number, 3);
      value.string = text.substr(1, text.size() - 3);
      break;
    }
    default: {
      const size_t count = random.below(5) * (value.type == '%' ? 2 : 1);
      for (size_t i = 0; i < count; ++i) {
        value.children.push_back(random_value(random, depth - 1, false));
      }
    }
  }
  return value;
}

std::string write(const Value& value, int proto) {
  std::string out;
  append_value(out, value, proto);
  return out;
}

TEST(Value, WriteAndParseAreInverse) {
  const uint64_t seed = system_seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 3000; ++round) {
    const Value value = random_value(random, 4, true);
    const std::string bytes = write(value, 3);
    const Result<Value> parsed = parse_value(bytes);
    ASSERT_TRUE(parsed) << bytes;
    ASSERT_EQ(*parsed, value) << bytes;
    ASSERT_EQ(write(*parsed, 3), bytes);
  }
}

TEST(Value, ScannerFindsTheSameEndAtAnyCut) {
  const uint64_t seed = system_seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  ReplyScanner scanner;
  for (int round = 0; round < 3000; ++round) {
    const std::string first = write(random_value(random, 4, true), 3);
    const std::string bytes = first + "$3\r\nabc\r\n";
    size_t at = 0;
    while (true) {
      const size_t piece = std::min(bytes.size() - at, 1 + random.below(first.size() + 4));
      const std::vector<char> copy(bytes.begin() + at, bytes.begin() + at + piece);
      const Scan scan = scanner.scan({copy.data(), piece});
      ASSERT_FALSE(scan.error) << bytes;
      at += scan.consumed;
      if (scan.complete) break;
      ASSERT_EQ(scan.consumed, piece);
      ASSERT_LT(at, first.size());
    }
    ASSERT_EQ(at, first.size()) << bytes;
    ASSERT_EQ(scanner.type(), first[0]);
  }
}

TEST(Value, DowngradeIsTheResp2Form) {
  const uint64_t seed = system_seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 3000; ++round) {
    const Value value = random_value(random, 4, true);
    std::string out = "kept";
    ASSERT_TRUE(downgrade(write(value, 3), out));
    ASSERT_EQ(out, "kept" + write(value, 2));
    ASSERT_TRUE(parse_value(std::string_view(out).substr(4)));
  }
}

TEST(Value, MalformedIsAnErrorAtEveryLength) {
  const std::string reply =
      "*3\r\n$3\r\nabc\r\n%1\r\n+k\r\n,1.5\r\n|1\r\n+a\r\n:1\r\n=5\r\ntxt:x\r\n";
  ASSERT_TRUE(parse_value(reply));
  std::string out = "kept";
  for (size_t size = 0; size < reply.size(); ++size) {
    EXPECT_FALSE(parse_value(reply.substr(0, size))) << size;
    EXPECT_FALSE(downgrade(reply.substr(0, size), out)) << size;
  }
  EXPECT_FALSE(parse_value(reply + "+"));
  EXPECT_FALSE(downgrade(reply + "+", out));
  EXPECT_EQ(out, "kept");
  for (std::string_view bad : {"$-5\r\n", "*999999999\r\n", "$2147483645\r\n", ",x\r\n", ",\r\n",
                               "(1", "*1\r\n>0\r\n", "|0\r\n>0\r\n", ".\r\n", ";0\r\n"}) {
    EXPECT_FALSE(parse_value(bad)) << bad;
  }
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "*1\r\n";
  EXPECT_FALSE(parse_value(deep + ":1\r\n"));
}

TEST(Value, StreamedTypesBecomePlain) {
  const std::string reply = "*?\r\n$?\r\n;2\r\nab\r\n;1\r\nc\r\n;0\r\n%?\r\n+k\r\n_\r\n.\r\n.\r\n";
  const Result<Value> value = parse_value(reply);
  ASSERT_TRUE(value);
  EXPECT_EQ(write(*value, 3), "*2\r\n$3\r\nabc\r\n%1\r\n+k\r\n_\r\n");
  std::string out;
  ASSERT_TRUE(downgrade(reply, out));
  EXPECT_EQ(out, "*2\r\n$3\r\nabc\r\n*2\r\n+k\r\n$-1\r\n");
}

TEST(Downgrade, EachType) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"_\r\n", "$-1\r\n"},
      {"#t\r\n", ":1\r\n"},
      {"#f\r\n", ":0\r\n"},
      {",1.5\r\n", "$3\r\n1.5\r\n"},
      {"(12345678901234567890\r\n", "$20\r\n12345678901234567890\r\n"},
      {"=7\r\ntxt:a\r\n\r\n", "$3\r\na\r\n\r\n"},
      {"!5\r\nERR\r\n\r\n", "-ERR  \r\n"},
      {"%2\r\n+a\r\n:1\r\n+b\r\n~1\r\n:2\r\n", "*4\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n"},
      {">1\r\n+x\r\n", "*1\r\n+x\r\n"},
      {"|1\r\n+a\r\n%1\r\n+b\r\n$1\r\nx\r\n$2\r\nok\r\n", "$2\r\nok\r\n"},
      {"|1\r\n+a\r\n|1\r\n:1\r\n:2\r\n:3\r\n:4\r\n", ":4\r\n"},
      {"*-1\r\n", "*-1\r\n"},
      {"$-1\r\n", "$-1\r\n"},
  };
  for (const auto& [from, to] : cases) {
    std::string out;
    EXPECT_TRUE(downgrade(from, out)) << from;
    EXPECT_EQ(out, to) << from;
  }
}

TEST(Write, BothProtocols) {
  std::string two;
  std::string three;
  for (auto [out, proto] : {std::pair(&two, 2), std::pair(&three, 3)}) {
    append_null(*out, proto);
    append_null_array(*out, proto);
    append_map_header(*out, 2, proto);
    append_set_header(*out, 2, proto);
    append_push_header(*out, 2, proto);
    append_double(*out, 0.1, proto);
    append_double(*out, -INFINITY, proto);
    append_double(*out, 3, proto);
    append_bool(*out, true, proto);
    append_error(*out, "ERR a\r\n-b");
    append_integer(*out, INT64_MIN);
  }
  EXPECT_EQ(
      two,
      "$-1\r\n*-1\r\n*4\r\n*2\r\n*2\r\n$19\r\n0.10000000000000001\r\n$4\r\n-inf\r\n$1\r\n3\r\n"
      ":1\r\n-ERR a  -b\r\n:-9223372036854775808\r\n");
  EXPECT_EQ(three,
            "_\r\n_\r\n%2\r\n~2\r\n>2\r\n,0.10000000000000001\r\n,-inf\r\n,3\r\n"
            "#t\r\n-ERR a  -b\r\n:-9223372036854775808\r\n");
}

}  // namespace
}  // namespace ballast::proto
