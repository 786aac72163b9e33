// SPDX-License-Identifier: Apache-2.0
// What one request and one reply cost the data path; each case beside a plain memchr over the
// same bytes.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>

#include "proto/command_table.h"
#include "proto/resp_command.h"
#include "proto/resp_convert.h"
#include "proto/resp_reply.h"
#include "proto/resp_write.h"
#include "proto/slot.h"

namespace ballast::proto {
namespace {

std::string pipeline(std::string_view message) {
  std::string bytes;
  for (int i = 0; i < 16; ++i) bytes += message;
  return bytes;
}

void per_message(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * 16);
  state.counters["ns"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 16e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void parse_commands(benchmark::State& state, std::string_view message) {
  const std::string bytes = pipeline(message);
  CommandParser parser;
  for (auto _ : state) {
    std::string_view left = bytes;
    while (!left.empty()) {
      parser.parse(left);
      benchmark::DoNotOptimize(parser.args().data());
      left.remove_prefix(parser.consumed());
    }
  }
  per_message(state);
}

void scan_replies(benchmark::State& state, std::string_view message) {
  const std::string bytes = pipeline(message);
  ReplyScanner scanner;
  for (auto _ : state) {
    std::string_view left = bytes;
    while (!left.empty()) left.remove_prefix(scanner.scan(left).consumed);
    benchmark::DoNotOptimize(left.data());
  }
  per_message(state);
}

void find_lines(benchmark::State& state, std::string_view message) {
  const std::string bytes = pipeline(message);
  for (auto _ : state) {
    std::string_view left = bytes;
    while (!left.empty()) left.remove_prefix(left.find('\n') + 1);
    benchmark::DoNotOptimize(left.data());
  }
  per_message(state);
}

constexpr std::string_view kGet = "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000012345\r\n";
constexpr std::string_view kBulk64 =
    "$64\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n";
constexpr std::string_view kList = "*4\r\n$3\r\nabc\r\n:12\r\n$-1\r\n+OK\r\n";

BENCHMARK_CAPTURE(parse_commands, get, kGet);
BENCHMARK_CAPTURE(parse_commands, inline_ping, "PING\r\n");
BENCHMARK_CAPTURE(find_lines, get, kGet);
BENCHMARK_CAPTURE(scan_replies, bulk64, kBulk64);
BENCHMARK_CAPTURE(scan_replies, simple, "+OK\r\n");
BENCHMARK_CAPTURE(scan_replies, integer, ":12345\r\n");
BENCHMARK_CAPTURE(scan_replies, null, "$-1\r\n");
BENCHMARK_CAPTURE(scan_replies, list, kList);
BENCHMARK_CAPTURE(scan_replies, attribute, "|1\r\n$4\r\nload\r\n:123\r\n$3\r\nabc\r\n");
BENCHMARK_CAPTURE(find_lines, bulk64, kBulk64);

void slot(benchmark::State& state) {
  const std::string key(static_cast<size_t>(state.range(0)), 'k');
  for (auto _ : state) {
    std::string_view view = key;
    benchmark::DoNotOptimize(view);
    benchmark::DoNotOptimize(key_slot(view));
  }
}
BENCHMARK(slot)->Arg(8)->Arg(16)->Arg(64);

void find_command(benchmark::State& state) {
  std::string reply = "*200\r\n";
  for (int i = 0; i < 199; ++i) {
    reply += "*6\r\n$7\r\nnone" + std::to_string(100 + i) + "\r\n:1\r\n*0\r\n:0\r\n:0\r\n:0\r\n";
  }
  reply += "*6\r\n$3\r\nget\r\n:2\r\n*1\r\n+readonly\r\n:1\r\n:1\r\n:1\r\n";
  const Result<CommandTable> table = CommandTable::from_reply(std::string_view(reply));
  const std::vector<std::string_view> args = {"GET", "key"};
  std::vector<KeyPosition> positions;
  for (auto _ : state) {
    const CommandInfo* info = table->find(args);
    benchmark::DoNotOptimize(info->keys(args, positions));
  }
}
BENCHMARK(find_command);

void downgrade_map(benchmark::State& state) {
  const std::string_view reply = "%2\r\n$1\r\na\r\n,1.5\r\n$1\r\nb\r\n_\r\n";
  std::string out;
  for (auto _ : state) {
    out.clear();
    benchmark::DoNotOptimize(downgrade(reply, out));
  }
}
BENCHMARK(downgrade_map);

}  // namespace
}  // namespace ballast::proto
