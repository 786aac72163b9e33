// SPDX-License-Identifier: Apache-2.0
// ballast bench: loads a Redis-protocol server, measures it and, if wanted, checks what it answers.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "app/command_line.h"
#include "app/flag_values.h"
#include "app/read_file.h"
#include "app/subcommand.h"
#include "base/random.h"
#include "bench/report.h"
#include "bench/session.h"
#include "bench/value.h"

namespace ballast::app {
namespace {

using bench::Settings;
using bench::Spread;

constexpr uint32_t kMostConnections = 60'000;
constexpr uint32_t kMostPipeline = 4096;
constexpr uint32_t kMostKeys = 1'000'000'000;
constexpr size_t kMostValue = size_t{512} * 1024 * 1024;

constexpr const char* kKeyGroup = "Keys";
constexpr const char* kLoadGroup = "Requests";
constexpr const char* kCheckGroup = "Checks and output";

constexpr const char* kFooter =
    "Latency is counted to the arrival of the reply: in a closed loop from the sending of the\n"
    "request, at a --rate from when it was due, sent late or not.\n"
    "\n"
    "With --verify each key is written by one connection, and each value carries its key, its "
    "writer\n"
    "and its number. A read is stale if it returns less than the newest value acknowledged, or "
    "seen\n"
    "by a finished read, before it began; lost if there should be a value and is none; foreign if\n"
    "the value is another key's or was never written; out of order if it does not see the writes\n"
    "sent before it, and only those, on its own connection. Nobody else may write these keys.\n"
    "\n"
    "Exit status: 0 done; 1 no connection, nothing but errors, or --verify found something;\n"
    "2 wrong usage.";

struct Asked {
  Settings settings;
  bool json = false;
  bool seed_given = false;
  std::vector<std::string> spreads;  // the flags that chose one
  std::string password_file;
};

Result<> set_targets(Settings& settings, const std::string& text) {
  settings.targets.clear();
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    const auto target = model::parse_endpoint(std::string_view(text).substr(from, comma - from));
    if (!target) return Unexpected(target.error());
    if (target->port == 0) return fail(ErrorCode::kInvalid, "port 0 cannot be connected to");
    settings.targets.push_back(*target);
    from = comma + 1;
  }
  return {};
}

Result<> set_value_size(Settings& settings, const std::string& text) {
  const size_t dash = text.find('-');
  const auto low = parse_bytes(text.substr(0, dash));
  const auto high = dash == std::string::npos ? low : parse_bytes(text.substr(dash + 1));
  if (!low) return Unexpected(low.error());
  if (!high) return Unexpected(high.error());
  if (*low > *high || *high > kMostValue)
    return fail(ErrorCode::kInvalid, "from 0 to 512MiB, the smaller size first");
  settings.value_min = static_cast<uint32_t>(*low);
  settings.value_max = static_cast<uint32_t>(*high);
  return {};
}

Result<> set_hotspot(Settings& settings, const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos)
    return fail(ErrorCode::kInvalid, "write two shares, e.g. 0.9:0.01");
  const auto reads = parse_share(text.substr(0, colon));
  const auto keys = parse_share(text.substr(colon + 1));
  if (!reads) return Unexpected(reads.error());
  if (!keys) return Unexpected(keys.error());
  settings.hot_reads = *reads;
  settings.hot_keys = *keys;
  return {};
}

std::vector<Flag> key_flags(Asked& asked) {
  Settings& settings = asked.settings;
  const auto chosen = [&asked](const char* flag, Spread spread) {
    asked.spreads.emplace_back(flag);
    asked.settings.spread = spread;
  };
  return {
      {"--keys", "COUNT", "how many keys there are", "100000", kKeyGroup, false,
       count_into(settings.keys, kMostKeys)},
      {"--zipf", "A", "Zipf's law with this exponent: rank r is drawn as often as 1/r^A", "0.99",
       kKeyGroup, false,
       [&settings, chosen](const std::string& text) {
         chosen("--zipf", Spread::kZipf);
         return number_into(settings.alpha, 10)(text);
       }},
      {"--uniform", "", "all keys alike", "", kKeyGroup, false,
       [chosen](const std::string&) -> Result<> {
         chosen("--uniform", Spread::kUniform);
         return {};
       }},
      {"--hotspot", "X:Y", "share X of the requests on share Y of the keys, e.g. 0.9:0.01", "",
       kKeyGroup, false,
       [&settings, chosen](const std::string& text) {
         chosen("--hotspot", Spread::kHotspot);
         return set_hotspot(settings, text);
       }},
      {"--replay", "FILE", "keys from a file, one a line, in its order, over and over", "",
       kKeyGroup, false,
       [&settings, chosen](const std::string& text) -> Result<> {
         chosen("--replay", Spread::kReplay);
         settings.replay_file = text;
         return {};
       }},
      {"--load", "", "write every key once before anything else", "", kKeyGroup, false,
       switch_into(settings.load)},
  };
}

std::vector<Flag> request_flags(Asked& asked) {
  Settings& settings = asked.settings;
  return {
      {"--target", "H:P[,H:P...]", "where to connect; connections go to several in turn",
       "127.0.0.1:6379", kLoadGroup, false,
       [&settings](const std::string& text) { return set_targets(settings, text); }},
      {"--write-targets", "COUNT", "send writes only to the first so many targets", "all",
       kLoadGroup, false, count_into(settings.write_targets, kMostConnections)},
      {"--writes", "SHARE", "share of SET among the requests, e.g. 0.02 or 2%; the others are GET",
       "0", kLoadGroup, false, share_into(settings.writes)},
      {"--value-size", "BYTES|MIN-MAX", "size of the values written", "64", kLoadGroup, false,
       [&settings](const std::string& text) { return set_value_size(settings, text); }},
      {"--connections", "COUNT", "connections, all at once", "50", kLoadGroup, false,
       count_into(settings.connections, kMostConnections)},
      {"--pipeline", "COUNT", "requests in flight on one connection, at most", "1", kLoadGroup,
       false, count_into(settings.pipeline, kMostPipeline)},
      {"--seconds", "S", "how long to measure; 0 with --load only loads", "10", kLoadGroup, false,
       number_into(settings.seconds, 1e6)},
      {"--warmup", "S", "how long to run before that", "1", kLoadGroup, false,
       number_into(settings.warmup_seconds, 1e6)},
      {"--rate", "REQ/S", "open loop: so many requests are due a second; 0 is a closed loop", "0",
       kLoadGroup, false, number_into(settings.rate, 1e8)},
      {"--resp3", "", "speak RESP3", "", kLoadGroup, false, switch_into(settings.resp3)},
      {"--password-file", "FILE",
       "holds the password for AUTH; else the environment's "
       "BALLAST_PASSWORD",
       "", kLoadGroup, false,
       [&asked](const std::string& text) -> Result<> {
         asked.password_file = text;
         return {};
       }},
  };
}

std::vector<Flag> bench_flags(Asked& asked) {
  std::vector<Flag> flags = key_flags(asked);
  for (Flag& flag : request_flags(asked)) flags.push_back(std::move(flag));
  flags.push_back({"--verify", "", "check every read while running", "", kCheckGroup, false,
                   switch_into(asked.settings.verify)});
  flags.push_back({"--seed", "NUMBER", "of the draws of keys and writes", "random", kCheckGroup,
                   false, [&asked](const std::string& text) {
                     asked.seed_given = true;
                     return seed_into(asked.settings.seed)(text);
                   }});
  flags.push_back({"--json", "", "print JSON", "", kCheckGroup, false, switch_into(asked.json)});
  return flags;
}

Result<> take_password(Asked& asked) {
  if (const char* given = std::getenv("BALLAST_PASSWORD")) asked.settings.password = given;
  if (asked.password_file.empty()) return {};
  auto text = read_file(asked.password_file);
  if (!text) return fail(ErrorCode::kInvalid, asked.password_file + ": " + text.error().message);
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  asked.settings.password = std::move(*text);
  return {};
}

// What single flags cannot see.
std::string find_conflict(const Asked& asked) {
  const Settings& settings = asked.settings;
  for (const std::string& spread : asked.spreads) {
    if (spread != asked.spreads.front())
      return fmt::format("{} and {}: give one", asked.spreads.front(), spread);
  }
  if (settings.verify && settings.value_min < bench::kTagSize)
    return fmt::format("--verify needs values of {} bytes or more", bench::kTagSize);
  if (settings.write_targets > settings.targets.size())
    return fmt::format("--write-targets {}: there are {} targets", settings.write_targets,
                       settings.targets.size());
  if (settings.connections < settings.targets.size())
    return fmt::format("--connections {}: there are {} targets", settings.connections,
                       settings.targets.size());
  if (settings.seconds <= 0 && !settings.load) return "--seconds 0 without --load does nothing";
  return "";
}

}  // namespace

int run_bench(const Arguments& arguments) {
  Asked asked;
  asked.settings.targets = {{"127.0.0.1", 6379}};
  const CommandLine command{.name = "ballast bench",
                            .summary = "loads a Redis-protocol server and measures what it does",
                            .flags = bench_flags(asked),
                            .footer = kFooter};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  if (const auto taken = take_password(asked); !taken)
    return usage_error(command.name, "--password-file: " + taken.error().message);
  if (const std::string conflict = find_conflict(asked); !conflict.empty())
    return usage_error(command.name, conflict + " (see ballast bench --help)");
  if (!asked.seed_given) asked.settings.seed = system_seed();
  const auto results = bench::run_session(asked.settings);
  if (!results) {
    if (results.error().code == ErrorCode::kInvalid)
      return usage_error(command.name, results.error().message);
    std::fprintf(stderr, "%s: %s\n", command.name.c_str(), results.error().message.c_str());
    return kExitFailed;
  }
  std::fputs((asked.json ? bench::report_json(asked.settings, *results)
                         : bench::report_text(asked.settings, *results))
                 .c_str(),
             stdout);
  const bool nothing = asked.settings.seconds > 0 && results->good() == 0;
  return nothing || results->violations() > 0 ? kExitFailed : kExitDone;
}

}  // namespace ballast::app
