// SPDX-License-Identifier: Apache-2.0
// ballast plan: how many cache nodes, how large, for the workload of a trace or of Zipf's law.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>

#include "app/command_line.h"
#include "app/flag_values.h"
#include "app/read_file.h"
#include "app/subcommand.h"
#include "balance/placement.h"
#include "base/clock.h"
#include "sim/demand.h"
#include "sim/plan.h"
#include "sim/plan_report.h"
#include "telemetry/progress.h"
#include "trace/read_trace.h"

namespace ballast::app {
namespace {

constexpr double kMostRate = 1e12;
constexpr double kMostObjects = 1e9;
constexpr uint32_t kMostKept = 16'000'000;
constexpr uint64_t kDefaultObjects = 100'000'000;
constexpr double kDefaultServerRate = 100'000;

constexpr const char* kWorkloadGroup = "Workload";
constexpr const char* kTargetGroup = "What is wanted";
constexpr const char* kOutputGroup = "Output";

constexpr const char* kFooter =
    "FILE is a trace, \"-\" standard input. --from trace looks at what it holds: keys one a line,\n"
    "KEY COUNT lines (the first line decides), what redis-cli MONITOR printed, or a capture "
    "(pcap,\n"
    "pcapng) of requests to Redis.\n"
    "\n"
    "Exit status: 0 there is a plan, or no cache is needed; 1 not possible, or the trace could "
    "not\n"
    "be read to its end; 2 wrong usage or a trace without requests.";

enum class Source : uint8_t { kNone, kZipf, kTrace };

struct Asked {
  Source source = Source::kNone;
  trace::TraceOptions trace;
  std::vector<std::string> files;
  bool ports_given = false;
  std::string commands_file;
  double alpha = 0.99;
  double objects = 0;  // 0: not given
  sim::Target target;
  double writes = -1;  // not given
  size_t shown = 10;
  size_t value_size = 128;
  bool json = false;
};

Result<> set_source(Asked& asked, const std::string& text) {
  struct Row {
    const char* name;
    Source source;
    trace::Form form;
  };
  constexpr Row kRows[] = {{"zipf", Source::kZipf, trace::Form::kAny},
                           {"trace", Source::kTrace, trace::Form::kAny},
                           {"keys", Source::kTrace, trace::Form::kKeys},
                           {"monitor", Source::kTrace, trace::Form::kMonitor},
                           {"pcap", Source::kTrace, trace::Form::kCapture}};
  std::string known;
  for (const Row& row : kRows) {
    if (text == row.name) {
      asked.source = row.source;
      asked.trace.form = row.form;
      return {};
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  return fail(ErrorCode::kInvalid, fmt::format("no form \"{}\"; there are {}", text, known));
}

// "100000000" or "1e8".
Result<> set_objects(double& objects, const std::string& text) {
  const auto number = parse_rate(text);
  if (!number || *number < 1 || *number > kMostObjects || *number != std::floor(*number))
    return fail(ErrorCode::kInvalid,
                fmt::format("\"{}\": a whole number from 1 to {:g}", text, kMostObjects));
  objects = *number;
  return {};
}

Result<> set_port(trace::TraceOptions& options, bool& given, const std::string& text) {
  uint32_t port = 0;
  const Result<> set = count_into(port, 65'535)(text);
  if (!set) return set;
  if (!given) options.ports.clear();
  given = true;
  options.ports.push_back(static_cast<uint16_t>(port));
  return {};
}

std::vector<Flag> workload_flags(Asked& asked) {
  return {
      {"--from", "FORM", "zipf, trace, keys, monitor or pcap; required", "", kWorkloadGroup, false,
       [&asked](const std::string& text) { return set_source(asked, text); }},
      {"--zipf", "A", "Zipf's exponent, with --from zipf", "0.99", kWorkloadGroup, false,
       number_into(asked.alpha, sim::kMostAlpha)},
      {"--objects", "COUNT", "objects there are, e.g. 1e8", "100000000; of a trace, estimated",
       kWorkloadGroup, false,
       [&asked](const std::string& text) { return set_objects(asked.objects, text); }},
      {"--writes", "SHARE", "share of writes among the requests, e.g. 0.02 or 2%",
       "as in the trace, else 0", kWorkloadGroup, false, share_into(asked.writes)},
      {"--value-size", "BYTES", "mean size of a value, for the memory", "128", kWorkloadGroup,
       false,
       [&asked](const std::string& text) -> Result<> {
         const auto size = parse_bytes(text);
         if (!size) return Unexpected(size.error());
         asked.value_size = *size;
         return {};
       }},
      {"--port", "PORT", "a server's, in captures; may be repeated", "6379", kWorkloadGroup, true,
       [&asked](const std::string& text) {
         return set_port(asked.trace, asked.ports_given, text);
       }},
      {"--commands", "FILE", "a server's reply to COMMAND, byte for byte", "redis 7.0.15's",
       kWorkloadGroup, false, text_into(asked.commands_file, "a file's name")},
      {"--max-keys", "COUNT", "keys counted exactly; of more, only the most frequent", "1000000",
       kWorkloadGroup, false, count_into(asked.trace.most_keys, kMostKept)},
  };
}

std::vector<Flag> target_flags(Asked& asked) {
  sim::Target& target = asked.target;
  return {
      {"--rate", "REQ/S", "requests a second to be carried", "the trace's busiest second",
       kTargetGroup, false, positive_into(target.rate, kMostRate)},
      {"--server-rate", "REQ/S", "requests a second of one server", "100000", kTargetGroup, false,
       positive_into(target.server_rate, kMostRate)},
      {"--shards", "COUNT", "servers there are", "--rate / --server-rate", kTargetGroup, false,
       count_into(target.servers, balance::kSlots)},
      {"--node-rate", "REQ/S", "requests a second of one leaf or spine", "a server's", kTargetGroup,
       false, positive_into(target.node_rate, kMostRate)},
      {"--headroom", "SHARE", "how much more than --rate is to be carried, e.g. 20%", "20%",
       kTargetGroup, false, share_into(target.headroom)},
      {"--objects-per-node", "COUNT", "objects that a node may hold, at most", "100000",
       kTargetGroup, false,
       count_into(target.most_objects_per_node, uint32_t{sim::kMostPlannedCopies})},
      {"--placements", "COUNT", "placements tried; the worst one decides", "3", kTargetGroup, false,
       count_into(target.runs, 100)},
      {"--seed", "NUMBER", "of the first placement; the others follow", "1", kTargetGroup, false,
       seed_into(target.seed)},
  };
}

std::vector<Flag> plan_flags(Asked& asked) {
  std::vector<Flag> flags = workload_flags(asked);
  for (Flag& flag : target_flags(asked)) flags.push_back(std::move(flag));
  flags.push_back({"--top", "COUNT", "hottest keys shown", "10", kOutputGroup, false,
                   count_into(asked.shown, 4096)});
  flags.push_back({"--json", "", "print JSON", "", kOutputGroup, false, switch_into(asked.json)});
  return flags;
}

// What single flags cannot see.
std::string find_conflict(const Asked& asked) {
  if (asked.source == Source::kNone) return "--from is required";
  if (asked.source == Source::kTrace && asked.files.size() != 1)
    return "--from with a trace needs one FILE, \"-\" for standard input";
  if (asked.source == Source::kZipf) {
    if (!asked.files.empty()) return "--from zipf reads no file: " + asked.files[0];
    if (asked.target.rate <= 0) return "--rate is required with --from zipf";
  }
  return "";
}

Result<> read_workload(Asked& asked, telemetry::Progress& progress, sim::PlanReport& report) {
  proto::CommandTable commands;
  if (!asked.commands_file.empty()) {
    const auto text = read_file(asked.commands_file);
    if (!text)
      return fail(ErrorCode::kInvalid,
                  fmt::format("--commands {}: {}", asked.commands_file, text.error().message));
    auto table = proto::CommandTable::from_reply(*text);
    if (!table)
      return fail(ErrorCode::kInvalid,
                  fmt::format("--commands {}: {}", asked.commands_file, table.error().message));
    commands = std::move(*table);
    asked.trace.commands = &commands;
  }
  asked.trace.progress = [&](uint64_t done, uint64_t size) {
    const double mib = static_cast<double>(done) / 1024 / 1024;
    progress.report(now_ns(),
                    size > 0
                        ? fmt::format("{}: {:.0f} MiB, {:.0f} %", asked.files[0], mib,
                                      100.0 * static_cast<double>(done) / static_cast<double>(size))
                        : fmt::format("{}: {:.0f} MiB", asked.files[0], mib));
  };
  auto workload = trace::read_trace(asked.files[0], asked.trace);
  if (!workload) return Unexpected(workload.error());
  report.workload = std::move(*workload);
  return {};
}

// Holds --objects against what the trace says.
Result<> check_objects(const Asked& asked, const trace::Workload& workload) {
  if (asked.objects == 0) return {};
  if (asked.objects > static_cast<double>(workload.requests))
    return fail(ErrorCode::kInvalid,
                fmt::format("--objects {:.0f}: the trace's {} requests say nothing of so many",
                            asked.objects, workload.requests));
  if (asked.objects < workload.distinct - 4 * workload.distinct_error)
    return fail(ErrorCode::kInvalid,
                fmt::format("--objects {:.0f}: the trace holds {:.0f} distinct keys", asked.objects,
                            workload.distinct));
  return {};
}

// Writes and reads past the copies, as measured where the trace says so.
void take_mix(const Asked& asked, sim::PlanReport& report) {
  sim::Target& target = report.target;
  if (report.workload && report.workload->kinds_known) {
    const auto requests = static_cast<double>(report.workload->requests);
    target.writes = static_cast<double>(report.workload->writes) / requests;
    target.direct = static_cast<double>(report.workload->other_reads) / requests;
    if (asked.writes >= 0) target.direct = std::min(target.direct, 1 - asked.writes);
  }
  if (asked.writes >= 0) {
    target.writes = asked.writes;
  } else if (!report.workload || !report.workload->kinds_known) {
    report.assumed.emplace_back("no writes (--writes)");
  }
}

void take_capacity(sim::PlanReport& report) {
  sim::Target& target = report.target;
  if (target.rate <= 0) {
    target.rate = report.workload->busiest_second;
    report.assumed.emplace_back("the rate of the trace's busiest second (--rate)");
  }
  if (target.server_rate <= 0) {
    target.server_rate = kDefaultServerRate;
    report.assumed.emplace_back("100,000 requests a second of one server (--server-rate)");
  }
  if (target.node_rate <= 0) {
    target.node_rate = target.server_rate;
    report.assumed.emplace_back("a node as fast as a server (--node-rate)");
  }
  if (target.servers == 0) {
    const double even = std::ceil(target.rate / target.server_rate);
    target.servers = static_cast<size_t>(std::min(even, double{balance::kSlots}));
    report.assumed.emplace_back(
        "as many servers as would carry the rate if it were spread evenly (--shards)");
  }
}

void add_assumptions(sim::PlanReport& report) {
  const bool law = !report.workload || (report.fit.enough && report.fit.fits);
  auto& assumed = report.assumed;
  if (report.workload) {
    assumed.push_back(
        law ? fmt::format("the {} most frequent keys have the shares and slots measured, the "
                          "others those of the law fitted",
                          report.measured)
            : std::string("the shares are those measured; keys that the trace does not show ask "
                          "for nothing"));
  } else {
    assumed.emplace_back("keys fall on slots at random");
  }
  assumed.emplace_back("each server has an equal range of slots, each rack as many servers");
  assumed.emplace_back("nodes hold the hottest of the objects placed on them");
  assumed.emplace_back("every key is written as large a part of its requests as every other");
  assumed.push_back(fmt::format(
      "a write to an object with c copies costs its server 1 + {:g}·c requests and each copy's "
      "node {:g}",
      sim::WriteCost{}.server_per_copy, sim::WriteCost{}.node_per_copy));
  assumed.push_back(
      fmt::format("a copy takes its value of {} bytes (--value-size) and about {} more",
                  report.value_size, sim::kCopyOverhead));
  assumed.push_back(fmt::format(
      "rates are the least of {} placements, split as well as can be; all loads are steady",
      report.target.runs));
}

}  // namespace

int run_plan(const Arguments& arguments) {
  Asked asked;
  const CommandLine command{.name = "ballast plan",
                            .summary = "says how many cache nodes, how large, a workload needs",
                            .flags = plan_flags(asked),
                            .footer = kFooter,
                            .positional = "FILE",
                            .rest = &asked.files};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  if (const std::string conflict = find_conflict(asked); !conflict.empty())
    return usage_error(command.name, conflict + " (see ballast plan --help)");
  telemetry::Progress progress;
  sim::PlanReport report;
  report.target = asked.target;
  report.shown = asked.shown;
  report.value_size = asked.value_size;
  sim::DemandOf demand;
  if (asked.source == Source::kZipf) {
    report.alpha = asked.alpha;
    report.objects = asked.objects > 0 ? static_cast<uint64_t>(asked.objects) : kDefaultObjects;
    report.source = fmt::format("Zipf {:g}", asked.alpha);
    demand = [&report](size_t head) {
      return sim::zipf_demand(report.objects, report.alpha, head);
    };
  } else {
    Result<> read = read_workload(asked, progress, report);
    if (read) read = check_objects(asked, *report.workload);
    progress.finish();
    if (!read) {
      if (read.error().code == ErrorCode::kInvalid)
        return usage_error(command.name, read.error().message);
      std::fprintf(stderr, "%s: %s\n", command.name.c_str(), read.error().message.c_str());
      return kExitFailed;
    }
    if (report.target.rate <= 0 && !report.workload->times_known)
      return usage_error(command.name, "--rate is required: the trace does not tell times");
    report.source = asked.files[0] == "-" ? "standard input" : asked.files[0];
    report.fit = sim::fit_workload(*report.workload, static_cast<uint64_t>(asked.objects));
    report.measured = sim::measured_keys(*report.workload, report.fit);
    report.objects = report.fit.enough && report.fit.fits
                         ? report.fit.objects
                         : static_cast<uint64_t>(report.workload->distinct);
    demand = [&report](size_t head) {
      return sim::workload_demand(*report.workload, report.fit, head);
    };
  }
  take_mix(asked, report);
  take_capacity(report);
  add_assumptions(report);
  report.target.progress = [&](const std::string& stage) { progress.report(now_ns(), stage); };
  report.plan = sim::make_plan(demand, report.target);
  progress.finish();
  std::fputs((asked.json ? sim::plan_json(report) : sim::plan_text(report)).c_str(), stdout);
  const auto verdict = report.plan.verdict;
  const bool possible =
      verdict == sim::Plan::Verdict::kPlanned || verdict == sim::Plan::Verdict::kNotNeeded;
  return possible ? kExitDone : kExitFailed;
}

}  // namespace ballast::app
