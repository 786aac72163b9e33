// SPDX-License-Identifier: Apache-2.0
#include "trace/capture.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "proto/resp_write.h"

namespace ballast::trace {
namespace {

constexpr uint32_t kRaw = 101;

template <typename Number>
std::string bytes_of(Number number) {
  std::string out(sizeof(number), '\0');
  std::memcpy(out.data(), &number, sizeof(number));
  return out;
}

std::string be16(size_t value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
}

std::string command(std::initializer_list<std::string_view> args) {
  std::string out;
  proto::append_command(out, std::vector<std::string_view>(args));
  return out;
}

std::string header(uint32_t link = kRaw) {
  return bytes_of(0xa1b2c3d4U) + bytes_of(uint16_t{2}) + bytes_of(uint16_t{4}) +
         bytes_of(uint64_t{0}) + bytes_of(65'535U) + bytes_of(link);
}

struct To {
  size_t server = 6379;  // its port
  char flags = 0x18;     // TCP's
};

// One packet of a client with this port, at a time in milliseconds.
std::string packet(uint32_t ms, size_t client, uint32_t sequence, const std::string& payload,
                   To to = {}) {
  const std::string number = {static_cast<char>(sequence >> 24), static_cast<char>(sequence >> 16),
                              static_cast<char>(sequence >> 8), static_cast<char>(sequence)};
  const std::string tcp = be16(client) + be16(to.server) + number + std::string(4, '\0') + '\x50' +
                          to.flags + std::string(6, '\0') + payload;
  const std::string ip = std::string("\x45\0", 2) + be16(20 + tcp.size()) + std::string(4, '\0') +
                         "\x40\x06" + std::string(2, '\0') +
                         std::string("\x0a\0\0\1\x0a\0\0\2", 8) + tcp;
  const auto size = static_cast<uint32_t>(ip.size());
  return bytes_of(1'000'000 + ms / 1000) + bytes_of(ms % 1000 * 1000) + bytes_of(size) +
         bytes_of(size) + ip;
}

class CaptureTest : public testing::Test {
 protected:
  CaptureTest() : path_(testing::TempDir() + "/capture-test-" + std::to_string(getpid())) {}
  ~CaptureTest() override { std::remove(path_.c_str()); }

  Result<Workload> read(const std::string& content, const TraceOptions& options = {}) {
    std::ofstream(path_, std::ios::binary) << content;
    return read_trace(path_, options);
  }

  std::string path_;
};

std::string two_clients() {
  const std::string get = command({"GET", "a"});
  const std::string set = command({"SET", "b", "1"});
  return header() + packet(0, 1000, 99, "", {6379, 2}) + packet(1, 1000, 100, get) +
         packet(2, 2000, 500, set) +
         packet(3, 1000, 100 + static_cast<uint32_t>(2 * get.size()), get) +
         packet(4, 1000, 100 + static_cast<uint32_t>(get.size()), get) +  // out of order
         packet(5, 1000, 100, get) +                                      // once more
         packet(1500, 2000, 500 + static_cast<uint32_t>(set.size()), command({"MGET", "a", "b"})) +
         packet(1501, 3000, 1, command({"GET", "other port"}), {6380});
}

TEST_F(CaptureTest, CountsWhatClientsSent) {
  const auto workload = read(two_clients());
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_EQ(workload->form, "capture");
  EXPECT_EQ(workload->requests, 6U);
  EXPECT_EQ(workload->names[0], "a");
  EXPECT_EQ(workload->keys[0].count, 4U);
  EXPECT_EQ(workload->keys[1].writes, 1U);
  EXPECT_EQ(workload->kept_reads, 3U);
  EXPECT_EQ(workload->other_reads, 2U);
  EXPECT_NEAR(workload->seconds, 1.499, 1e-9);
  EXPECT_EQ(workload->first, 1'000'000 * kSecond + kMillisecond);
  const auto both = read(two_clients(), {.ports = {6379, 6380}});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->requests, 7U);
}

TEST_F(CaptureTest, ACutFileGivesWhatItHoldsAndSaysSo) {
  const std::string whole = two_clients();
  const auto workload = read(whole.substr(0, whole.size() - 10));
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_EQ(workload->requests, 6U);
  ASSERT_FALSE(workload->notes.empty());
  EXPECT_NE(workload->notes.back().find("up to packet 7: truncated"), std::string::npos)
      << workload->notes.back();
  for (size_t size = 4; size < whole.size(); size += 7) {
    const auto part = read(whole.substr(0, size));
    EXPECT_TRUE(part || part.error().message.starts_with(path_)) << part.error().message;
  }
}

TEST_F(CaptureTest, WithoutCommandsThereIsAClearError) {
  const auto error_of = [&](const std::string& content, const TraceOptions& options = {}) {
    const auto workload = read(content, options);
    return workload ? std::string("none") : workload.error().message.substr(path_.size());
  };
  EXPECT_EQ(error_of(two_clients(), {.ports = {1, 2}}),
            ": no command with a key to port 1, 2 (--port) in 8 packets");
  EXPECT_EQ(error_of(header(253)), ": link type NETLINK is not known here");
  EXPECT_EQ(error_of("user:1\n", {.form = Form::kCapture}).find(": not a capture: "), 0U);
  EXPECT_EQ(error_of(two_clients(), {.form = Form::kKeys}), ": is a capture, not text");
  EXPECT_EQ(error_of(header() + packet(1, 1000, 1, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")),
            ": no command with a key to port 6379 (--port) in 1 packets");
}

TEST_F(CaptureTest, ManyConnectionsTakeBoundedMemory) {
  std::ofstream file(path_, std::ios::binary);
  file << header();
  const std::string get = command({"GET", "a"});
  for (uint32_t i = 0; i < 150'000; ++i)
    file << packet(i / 100, 1 + i % 60'000, 7, get, {6000 + i / 60'000});
  file.close();
  const auto workload = read_trace(path_, {.ports = {6000, 6001, 6002}});
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_EQ(workload->requests, 150'000U);
}

// Captures of other projects, none of them of Redis: nothing is found, nothing goes wrong.
TEST(SharedCaptures, AreSurvived) {
  const std::filesystem::path folder = BALLAST_CAPTURES;
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << folder << " is not there";
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    if (!is_capture(content)) continue;
    ++read;
    TraceOptions options;
    options.ports = {6379, 22, 80, 443, 2123, 2152, 36412};
    const auto workload = read_trace(entry.path(), options);
    ASSERT_FALSE(workload) << entry.path();
    const std::string& why = workload.error().message;
    EXPECT_TRUE(why.find("no command with a key") != std::string::npos ||
                why.find("link type") != std::string::npos)
        << why;
  }
  EXPECT_GT(read, 10);
}

}  // namespace
}  // namespace ballast::trace
