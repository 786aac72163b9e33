// SPDX-License-Identifier: Apache-2.0
#include "trace/read_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "trace/request_counter.h"

namespace ballast::trace {
namespace {

class ReadTrace : public testing::Test {
 protected:
  ReadTrace() : path_(testing::TempDir() + "/read-trace-test-" + std::to_string(getpid())) {}
  ~ReadTrace() override { std::remove(path_.c_str()); }

  Result<Workload> read(const std::string& content, const TraceOptions& options = {}) {
    std::ofstream(path_, std::ios::binary) << content;
    return read_trace(path_, options);
  }
  std::string error(const std::string& content, const TraceOptions& options = {}) {
    const auto read_back = read(content, options);
    if (read_back) return "none";
    EXPECT_EQ(read_back.error().code, ErrorCode::kInvalid);
    EXPECT_TRUE(read_back.error().message.starts_with(path_)) << read_back.error().message;
    return read_back.error().message.substr(
        std::min(path_.size(), read_back.error().message.size()));
  }

  std::string path_;
};

TEST_F(ReadTrace, KeysOneALine) {
  const auto workload = read("b\na\r\n\nb\nwith space\nb");
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_EQ(workload->form, "keys");
  EXPECT_EQ(workload->requests, 5U);
  EXPECT_EQ(workload->names[0], "b");
  EXPECT_EQ(workload->keys[0].count, 3U);
  EXPECT_EQ(workload->distinct, 3);
  EXPECT_FALSE(workload->kinds_known);
  EXPECT_FALSE(workload->times_known);
}

TEST_F(ReadTrace, KeysWithCounts) {
  const auto workload = read("user:1 10\nuser 2\t30\nuser:1 5 \n");
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_EQ(workload->form, "key counts");
  EXPECT_EQ(workload->requests, 45U);
  EXPECT_EQ(workload->names[0], "user 2");
  EXPECT_EQ(workload->keys[1].count, 15U);
}

TEST_F(ReadTrace, ErrorsNameFileAndLine) {
  EXPECT_EQ(error(""), ": is empty");
  EXPECT_EQ(error("\n\n"), ": holds no request to a key");
  EXPECT_EQ(error("a 5\nb x\n"), ":2: not KEY COUNT, as the first line is");
  EXPECT_EQ(error("a 5\n\nb 0\n"), ":3: a count must be above 0, and all together below 2^53");
  EXPECT_EQ(error("a 5\nb -1\n"), ":2: not KEY COUNT, as the first line is");
  EXPECT_EQ(error("a 9007199254740000\nb 9007199254740000\n"),
            ":2: a count must be above 0, and all together below 2^53");
  EXPECT_EQ(error("a\n", {.form = Form::kMonitor}), ":1: not a line of redis-cli MONITOR");
  EXPECT_EQ(error("1.5 [0 x] \"ping\"\n"), ": holds no request to a key");
  EXPECT_FALSE(read_trace("/nowhere/keys", {}));
  EXPECT_FALSE(read_trace("/", {}));
}

constexpr const char* kMonitor =
    "OK\n"
    "1339518083.107412 [0 127.0.0.1:60866] \"get\" \"a\\x00b\"\n"
    "1339518083.507412 [0 127.0.0.1:60866] \"MGET\" \"x\" \"y\" \"x\"\n"
    "1339518084.107412 [1 127.0.0.1:60866] \"set\" \"x\" \"v\"\n"
    "1339518084.107413 [0 127.0.0.1:60867] \"eval\" \"return 1\" \"1\" \"x\"\n"
    "1339518084.107414 [0 lua] \"get\" \"x\"\n"
    "1339518084.107415 [0 127.0.0.1:60867] \"ttl\" \"x\"\n"
    "1339518084.107416 [0 127.0.0.1:60867] \"json.get\" \"x\"\n"
    "1339518084.107417 [0 127.0.0.1:60867] \"PING\"\n"
    "garbage\n"
    "1339518085.107417 [0 127.0.0.1:60867] \"hset\" \"h\" \"f\" \"v\"\n"
    "1339518085.107418 [0 127.0.0.1:60867] \"se";

TEST_F(ReadTrace, Monitor) {
  const auto workload = read(kMonitor);
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_EQ(workload->form, "monitor");
  EXPECT_EQ(workload->requests, 8U);
  EXPECT_EQ(workload->names[0], "x");
  EXPECT_EQ(workload->keys[0].count, 5U);
  EXPECT_EQ(workload->keys[0].writes, 2U);
  EXPECT_EQ(workload->distinct, 4);
  EXPECT_TRUE(workload->kinds_known);
  EXPECT_EQ(workload->kept_reads, 1U);
  EXPECT_EQ(workload->other_reads, 4U);
  EXPECT_EQ(workload->writes, 3U);
  EXPECT_TRUE(workload->times_known);
  EXPECT_NEAR(workload->seconds, 2.000005, 1e-9);
  EXPECT_EQ(workload->busiest_second, 4);
  std::string notes;
  for (const std::string& note : workload->notes) notes += note + "\n";
  for (const char* part : {"line 12 is cut off", "first of them line 10", "json.get (1)",
                           "1 commands that scripts ran", "1 commands were for other databases"})
    EXPECT_NE(notes.find(part), std::string::npos) << part << "\n" << notes;
}

TEST_F(ReadTrace, ALineOverTheBoundIsCut) {
  std::string line = "1.5 [0 127.0.0.1:1] \"set\" \"key\" \"";
  line += std::string(size_t{20} << 20, 'v') + "\"\n1.6 [0 127.0.0.1:1] \"get\" \"key\"\n";
  const auto workload = read(line);
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_EQ(workload->keys[0].count, 2U);
  EXPECT_EQ(workload->writes, 1U);
  EXPECT_EQ(error("a\n" + std::string(size_t{20} << 20, 'k') + "\nb\n"),
            ":2: a key of more than 16 MiB");
}

TEST_F(ReadTrace, MemoryIsBoundedAndTheResultSaysSo) {
  std::string keys;
  for (int i = 0; i < 5000; ++i) keys += "hot\nkey" + std::to_string(i) + "\n";
  const auto workload = read(keys, {.most_keys = 100});
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_FALSE(workload->exact);
  EXPECT_EQ(workload->names[0], "hot");
  EXPECT_EQ(workload->keys.size(), 1U);
  EXPECT_EQ(workload->distinct, 5001);
}

TEST_F(ReadTrace, ProgressTellsBytes) {
  std::string keys;
  for (int i = 0; i < 20'000; ++i) keys += "some key\n";
  uint64_t last = 0;
  TraceOptions options;
  options.progress = [&](uint64_t done, uint64_t size) {
    EXPECT_GE(done, last);
    EXPECT_EQ(size, keys.size());
    last = done;
  };
  ASSERT_TRUE(read(keys, options));
  EXPECT_GT(last, keys.size() / 2);
}

TEST(RequestCounter, BuiltInTableKnowsRedis) {
  const proto::CommandTable& table = built_in_commands();
  EXPECT_GT(table.all().size(), 350U);
  ASSERT_NE(table.find("zrangestore"), nullptr);
  EXPECT_TRUE(table.find("get")->repeatable());
  EXPECT_EQ(&table, &built_in_commands());
}

}  // namespace
}  // namespace ballast::trace
