// SPDX-License-Identifier: Apache-2.0
// ballast-histories: concurrent clients on few hot keys through any number of endpoints, every
// operation recorded, the record checked for linearizability (I1) and order (I3). Exit status 0: no
// violation; 1: a violation, or it could not run; 2: wrong usage.
#include <fmt/format.h>
#include <getopt.h>

#include <charconv>
#include <cstdio>
#include <deque>
#include <thread>

#include "bypass.h"
#include "linearizability.h"
#include "session.h"

namespace ballast::faults {
namespace {

constexpr const char* kUsage =
    "usage: ballast-histories --endpoints H:P[,H:P...] [options]\n"
    "  --seconds N          stop after this time (default 10)\n"
    "  --operations N       stop after this many operations (default 0: no limit)\n"
    "  --sessions N         client connections, each a thread (default 12)\n"
    "  --keys N             hot keys, each written half as often as the former (default 6)\n"
    "  --cold-keys N        keys that share a fifth of the traffic (default 2000)\n"
    "  --writes PERCENT     SET, one in five with PX (default 4)\n"
    "  --deletes PERCENT    DEL (default 1)\n"
    "  --flush-every MS     FLUSHALL through an endpoint (default 0: never)\n"
    "  --bypass H:P[,...]   a writer on this shard, past the tier: its staleness is reported\n"
    "  --timeout MS         longest wait for a reply (default 3000)\n"
    "  --seed N             (default from the system)\n"
    "  --json               the result as one JSON object\n";

struct Options {
  WorkloadOptions workload;
  std::vector<Endpoint> bypass;
  Nanos duration_ns = 10 * kSecond;
  uint64_t operations = 0;
  Nanos flush_every_ns = 0;
  bool as_json = false;
};

struct Summary {
  uint64_t operations = 0;
  double seconds = 0;
  double check_seconds = 0;
  std::vector<std::string> violations;
  Staleness staleness;
};

Result<std::vector<Endpoint>> parse_endpoints(std::string_view text) {
  std::vector<Endpoint> endpoints;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    auto endpoint = parse_endpoint(text.substr(0, comma));
    if (!endpoint) return tl::unexpected(endpoint.error());
    endpoints.push_back(*endpoint);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return endpoints;
}

Result<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > 1'000'000'000'000) {
    return fail(ErrorCode::kInvalid, fmt::format("'{}' is not a number", text));
  }
  return value;
}

Result<> apply_option(std::string_view name, std::string_view text, Options& options) {
  if (name == "endpoints" || name == "bypass") {
    auto endpoints = parse_endpoints(text);
    if (!endpoints) return tl::unexpected(endpoints.error());
    (name == "bypass" ? options.bypass : options.workload.endpoints) = std::move(*endpoints);
    return {};
  }
  const auto parsed = parse_number(text);
  if (!parsed) return tl::unexpected(parsed.error());
  const uint64_t number = *parsed;
  const int small = static_cast<int>(std::min<uint64_t>(number, 1'000'000));
  WorkloadOptions& workload = options.workload;
  if (name == "seconds") options.duration_ns = static_cast<Nanos>(small) * kSecond;
  if (name == "operations") options.operations = number;
  if (name == "sessions") workload.sessions = std::max(small, 1);
  if (name == "keys") workload.hot_keys = std::max(small, 1);
  if (name == "cold-keys") workload.cold_keys = std::max(small, 1);
  if (name == "writes") workload.write_percent = std::min(small, 80);
  if (name == "deletes") workload.delete_percent = std::min(small, 10);
  if (name == "flush-every") options.flush_every_ns = static_cast<Nanos>(small) * kMillisecond;
  if (name == "timeout") workload.timeout_ns = static_cast<Nanos>(small) * kMillisecond;
  if (name == "seed") workload.seed = number;
  return {};
}

Result<Options> parse_options(int argc, char** argv) {
  static const option long_options[] = {
      {"endpoints", 1, nullptr, 0}, {"seconds", 1, nullptr, 0}, {"operations", 1, nullptr, 0},
      {"sessions", 1, nullptr, 0},  {"keys", 1, nullptr, 0},    {"cold-keys", 1, nullptr, 0},
      {"writes", 1, nullptr, 0},    {"deletes", 1, nullptr, 0}, {"flush-every", 1, nullptr, 0},
      {"bypass", 1, nullptr, 0},    {"timeout", 1, nullptr, 0}, {"seed", 1, nullptr, 0},
      {"json", 0, nullptr, 0},      {nullptr, 0, nullptr, 0}};
  Options options;
  options.workload.seed = system_seed() % 1'000'000;
  int index = 0;
  for (int c = getopt_long(argc, argv, "", long_options, &index); c != -1;
       c = getopt_long(argc, argv, "", long_options, &index)) {
    if (c != 0) return fail(ErrorCode::kInvalid, "unknown option");
    const std::string_view name = long_options[index].name;
    if (name == "json") {
      options.as_json = true;
      continue;
    }
    if (auto applied = apply_option(name, optarg, options); !applied) {
      return fail(ErrorCode::kInvalid, fmt::format("--{}: {}", name, applied.error().message));
    }
  }
  if (options.workload.endpoints.empty() || optind != argc) {
    return fail(ErrorCode::kInvalid, "--endpoints is needed and nothing besides options");
  }
  options.workload.has_flushes = options.flush_every_ns > 0;
  options.workload.prefix = fmt::format("h{:x}:", system_seed() & 0xffffffff);
  return options;
}

void run_flushes(const Options& options, const Progress& progress, History& history) {
  const auto& endpoints = options.workload.endpoints;
  Nanos next_ns = now_ns() + options.flush_every_ns;
  for (size_t turn = 0; !progress.stop;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (now_ns() < next_ns) continue;
    next_ns += options.flush_every_ns;
    const Endpoint& endpoint = endpoints[turn++ % endpoints.size()];
    auto client = BlockingClient::connect(endpoint, options.workload.timeout_ns);
    if (!client) continue;
    const Nanos invoke_ns = now_ns();
    const auto reply = client->call({"FLUSHALL"});
    const bool is_known = reply && reply->type == '+';
    history.add_flush(invoke_ns, is_known ? now_ns() : kNever, -1);
  }
}

void wait_until_done(const Options& options, Progress& progress) {
  const Nanos start_ns = now_ns();
  Nanos said_ns = start_ns;
  while (now_ns() - start_ns < options.duration_ns &&
         (options.operations == 0 || progress.operations < options.operations)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (now_ns() - said_ns < 2 * kSecond) continue;
    said_ns = now_ns();
    fmt::print(stderr, "{} operations, {} errors, {} reconnects\n", progress.operations.load(),
               progress.errors.load(), progress.reconnects.load());
  }
  progress.stop = true;
}

Summary judge(const std::deque<Session>& sessions, const std::vector<Bypass>& bypasses,
              History& history) {
  Summary summary;
  std::vector<Record> bypassed;
  const std::string_view by = "by:";
  for (const Session& session : sessions) {
    for (const Record& record : session.records()) {
      if (record.key.find(by) != std::string::npos) {
        bypassed.push_back(record);
      } else {
        history.add(record.key, record.operation);
      }
    }
    for (const std::string& complaint : session.complaints()) {
      summary.violations.push_back(complaint);
    }
  }
  const Nanos start_ns = now_ns();
  for (const Violation& violation : history.check()) {
    summary.violations.push_back(describe(violation));
  }
  summary.check_seconds = static_cast<double>(now_ns() - start_ns) / static_cast<double>(kSecond);
  for (const Bypass& bypass : bypasses) {
    const Staleness one = bypass.measure(bypassed);
    summary.staleness.reads += one.reads;
    summary.staleness.stale_reads += one.stale_reads;
    summary.staleness.p99_ms = std::max(summary.staleness.p99_ms, one.p99_ms);
    summary.staleness.max_ms = std::max(summary.staleness.max_ms, one.max_ms);
  }
  return summary;
}

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

void print_json(const Summary& summary, const Progress& progress, uint64_t seed) {
  fmt::print("{{\"operations\":{},\"seconds\":{:.3f},\"operations_per_second\":{:.0f},",
             summary.operations, summary.seconds,
             static_cast<double>(summary.operations) / summary.seconds);
  fmt::print("\"errors\":{},\"reconnects\":{},\"unknown_writes\":{},\"check_seconds\":{:.3f},",
             progress.errors.load(), progress.reconnects.load(), progress.unknown.load(),
             summary.check_seconds);
  const Staleness& stale = summary.staleness;
  fmt::print(
      "\"seed\":{},\"bypass\":{{\"reads\":{},\"stale_reads\":{},\"p99_ms\":{:.3f},"
      "\"max_ms\":{:.3f}}},\"violations\":[",
      seed, stale.reads, stale.stale_reads, stale.p99_ms, stale.max_ms);
  for (size_t i = 0; i < summary.violations.size(); ++i) {
    fmt::print("{}{}", i == 0 ? "" : ",", quote(summary.violations[i]));
  }
  fmt::print("]}}\n");
}

void print_words(const Summary& summary, const Progress& progress, uint64_t seed) {
  fmt::print(
      "{} operations in {:.1f} s ({:.0f}/s), {} errors, {} reconnects, {} writes of unknown "
      "outcome; checked in {:.2f} s; seed {}\n",
      summary.operations, summary.seconds,
      static_cast<double>(summary.operations) / summary.seconds, progress.errors.load(),
      progress.reconnects.load(), progress.unknown.load(), summary.check_seconds, seed);
  const Staleness& stale = summary.staleness;
  if (stale.reads > 0) {
    fmt::print("writers past the tier: {} of {} reads stale, p99 {:.3f} ms, max {:.3f} ms\n",
               stale.stale_reads, stale.reads, stale.p99_ms, stale.max_ms);
  }
  for (const std::string& violation : summary.violations) fmt::print("{}\n", violation);
  fmt::print("{} violations\n", summary.violations.size());
}

Result<int> run(const Options& options) {
  const WorkloadOptions& workload = options.workload;
  std::vector<Bypass> bypasses;
  std::vector<std::string> watched;
  for (const Endpoint& shard : options.bypass) {
    constexpr int kKeysPerShard = 2;
    auto bypass = Bypass::create(workload, shard, kKeysPerShard);
    if (!bypass) return tl::unexpected(bypass.error());
    watched.insert(watched.end(), bypass->keys().begin(), bypass->keys().end());
    bypasses.push_back(std::move(*bypass));
  }
  Progress progress(workload.sessions);
  History history;
  std::deque<Session> sessions;
  std::vector<std::thread> threads;
  for (int i = 0; i < workload.sessions; ++i) sessions.emplace_back(workload, i, watched, progress);
  const Nanos start_ns = now_ns();
  for (Session& session : sessions) threads.emplace_back([&session] { session.run(); });
  for (Bypass& bypass : bypasses) {
    threads.emplace_back([&bypass, &workload, &progress] { bypass.run(workload, progress); });
  }
  if (options.flush_every_ns > 0) {
    threads.emplace_back([&] { run_flushes(options, progress, history); });
  }
  wait_until_done(options, progress);
  for (std::thread& thread : threads) thread.join();
  const Nanos end_ns = now_ns();
  Summary summary = judge(sessions, bypasses, history);
  summary.operations = progress.operations;
  summary.seconds = static_cast<double>(end_ns - start_ns) / static_cast<double>(kSecond);
  (options.as_json ? print_json : print_words)(summary, progress, workload.seed);
  return summary.violations.empty() && summary.operations > 0 ? 0 : 1;
}

}  // namespace
}  // namespace ballast::faults

int main(int argc, char** argv) {
  const auto options = ballast::faults::parse_options(argc, argv);
  if (!options) {
    fmt::print(stderr, "ballast-histories: {}\n{}", options.error().message,
               ballast::faults::kUsage);
    return 2;
  }
  const auto status = ballast::faults::run(*options);
  if (!status) {
    fmt::print(stderr, "ballast-histories: {}\n", status.error().message);
    return 1;
  }
  return *status;
}
