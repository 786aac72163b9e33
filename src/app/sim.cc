// SPDX-License-Identifier: Apache-2.0
// ballast sim cache: figures of the tier at scale, by the product's own placement and choice.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>

#include "app/command_line.h"
#include "app/subcommand.h"
#include "app/units.h"
#include "balance/placement.h"
#include "base/clock.h"
#include "sim/figure.h"
#include "sim/figure_report.h"
#include "telemetry/progress.h"

namespace ballast::app {
namespace {

constexpr uint32_t kMostObjects = 1'000'000'000;
constexpr uint32_t kMostNodes = 4096;
constexpr uint32_t kMostHeld = 100'000;
constexpr size_t kMostHeldInAll = 8'000'000;
constexpr uint32_t kMostRouters = 100'000;

constexpr const char* kTierGroup = "Tier";
constexpr const char* kLoadGroup = "Requests and queues";
constexpr const char* kOutputGroup = "Output";

struct Asked {
  sim::FigureOptions options;
  std::string figure;
  bool json = false;
  std::string plot;
};

auto count_into(size_t& target, uint32_t most) {
  return [&target, most](const std::string& text) -> Result<> {
    const auto count = parse_count(text);
    if (!count) return Unexpected(count.error());
    if (*count < 1 || *count > most)
      return fail(ErrorCode::kInvalid, fmt::format("\"{}\": from 1 to {}", text, most));
    target = *count;
    return {};
  };
}

auto positive_into(double& target, double most) {
  return [&target, most](const std::string& text) -> Result<> {
    const auto number = parse_rate(text);
    if (!number) return Unexpected(number.error());
    if (*number <= 0 || *number > most)
      return fail(ErrorCode::kInvalid, fmt::format("\"{}\": above 0, at most {:g}", text, most));
    target = *number;
    return {};
  };
}

auto switch_into(bool& target) {
  return [&target](const std::string& text) -> Result<> {
    const auto on = parse_switch(text);
    if (!on) return Unexpected(on.error());
    target = *on;
    return {};
  };
}

Result<> set_skew(double& alpha, const std::string& text) {
  const auto number = parse_rate(text);
  if (!number) return Unexpected(number.error());
  if (*number > 4) return fail(ErrorCode::kInvalid, fmt::format("\"{}\": from 0 to 4", text));
  alpha = *number;
  return {};
}

Result<> set_figure(std::string& figure, const std::string& text) {
  if (sim::find_figure(text) == nullptr) {
    std::string known;
    for (const sim::FigureKind& kind : sim::figure_kinds())
      known += fmt::format("{}{}", known.empty() ? "" : ", ", kind.name);
    return fail(ErrorCode::kInvalid, fmt::format("no figure \"{}\"; there are {}", text, known));
  }
  figure = text;
  return {};
}

std::vector<Flag> tier_flags(Asked& asked) {
  sim::Scenario& scenario = asked.options.scenario;
  return {
      {"--racks", "COUNT", "racks, each with a leaf", "32", kTierGroup, false,
       count_into(scenario.racks, kMostNodes)},
      {"--servers", "COUNT", "servers in each rack", "32", kTierGroup, false,
       count_into(scenario.servers_per_rack, kMostNodes)},
      {"--spines", "COUNT", "spines of each upper layer", "32", kTierGroup, false,
       count_into(scenario.spines, kMostNodes)},
      {"--layers", "COUNT", "layers of nodes, the leaves counted", "2", kTierGroup, false,
       count_into(scenario.layers, 8)},
      {"--objects-per-node", "COUNT", "objects that a node holds", "100", kTierGroup, false,
       count_into(scenario.objects_per_node, kMostHeld)},
      {"--node-capacity", "C", "of a node, in units of one server's", "a rack's servers",
       kTierGroup, false, positive_into(scenario.node_capacity, 1e6)},
  };
}

std::vector<Flag> load_flags(Asked& asked) {
  sim::Scenario& scenario = asked.options.scenario;
  sim::QueueingOptions& queueing = asked.options.queueing;
  return {
      {"--objects", "COUNT", "objects there are", "100000000", kLoadGroup, false,
       [&scenario](const std::string& text) -> Result<> {
         size_t count = 0;
         const Result<> set = count_into(count, kMostObjects)(text);
         if (set) scenario.objects = count;
         return set;
       }},
      {"--zipf", "A", "Zipf's law with this exponent, where the figure does not sweep it", "0.99",
       kLoadGroup, false,
       [&scenario](const std::string& text) { return set_skew(scenario.alpha, text); }},
      {"--routers", "COUNT", "routers, each with loads of its own", "32", kLoadGroup, false,
       count_into(queueing.routers, kMostRouters)},
      {"--telemetry", "DURATION", "least time between a node's reports to one router", "each reply",
       kLoadGroup, false,
       [&queueing](const std::string& text) -> Result<> {
         const auto ms = parse_duration_ms(text);
         if (!ms) return Unexpected(ms.error());
         queueing.telemetry = Nanos{*ms} * kMillisecond;
         return {};
       }},
      {"--server-rate", "REQ/S", "requests a second of one server", "1000", kLoadGroup, false,
       positive_into(queueing.requests_per_unit, 1e7)},
      {"--queue", "COUNT", "requests that a node or server holds", "128", kLoadGroup, false,
       positive_into(queueing.queue, 1e9)},
      {"--paced", "", "requests in even time, not Poisson", "", kLoadGroup, false,
       switch_into(queueing.paced)},
      {"--fixed-service", "", "each request takes the mean, not exponential times", "", kLoadGroup,
       false,
       [&queueing](const std::string& text) -> Result<> {
         const auto on = parse_switch(text);
         if (!on) return Unexpected(on.error());
         queueing.exponential_service = !*on;
         return {};
       }},
  };
}

std::vector<Flag> sim_flags(Asked& asked) {
  std::vector<Flag> flags{
      {"--figure", "NAME", "which one, see below; required", "", "", false,
       [&asked](const std::string& text) { return set_figure(asked.figure, text); }}};
  for (Flag& flag : tier_flags(asked)) flags.push_back(std::move(flag));
  for (Flag& flag : load_flags(asked)) flags.push_back(std::move(flag));
  sim::FigureOptions& options = asked.options;
  flags.push_back({"--seconds", "S", "simulated time that is measured", "2", kLoadGroup, false,
                   [&options](const std::string& text) -> Result<> {
                     double seconds = 0;
                     const Result<> set = positive_into(seconds, 3600)(text);
                     if (set) options.timing.measured = static_cast<Nanos>(seconds * kSecond);
                     return set;
                   }});
  flags.push_back({"--runs", "COUNT", "independent runs of each point", "3", kOutputGroup, false,
                   count_into(options.runs, 1000)});
  flags.push_back({"--seed", "NUMBER", "of the first run; the others follow", "1", kOutputGroup,
                   false, [&options](const std::string& text) -> Result<> {
                     const char* end = text.data() + text.size();
                     const auto [stop, error] = std::from_chars(text.data(), end, options.seed);
                     if (error != std::errc() || stop != end)
                       return fail(ErrorCode::kInvalid, "not a whole number: \"" + text + "\"");
                     return {};
                   }});
  flags.push_back({"--json", "", "print JSON", "", kOutputGroup, false, switch_into(asked.json)});
  flags.push_back({"--plot", "FILE", "also write a page with the plot, e.g. x.html", "",
                   kOutputGroup, false, [&asked](const std::string& text) -> Result<> {
                     if (text.empty()) return fail(ErrorCode::kInvalid, "needs a file's name");
                     asked.plot = text;
                     return {};
                   }});
  return flags;
}

// What single flags cannot see.
std::string find_conflict(const Asked& asked) {
  const sim::Scenario& scenario = asked.options.scenario;
  if (asked.figure.empty()) return "--figure is required";
  if (scenario.servers() > balance::kSlots)
    return fmt::format("--racks {} with --servers {}: more than {} servers", scenario.racks,
                       scenario.servers_per_rack, balance::kSlots);
  if (scenario.nodes() * scenario.objects_per_node > kMostHeldInAll)
    return fmt::format("--objects-per-node {}: more than {} objects in all nodes",
                       scenario.objects_per_node, kMostHeldInAll);
  return "";
}

std::string footer() {
  std::string out = "Figures:\n";
  for (const sim::FigureKind& kind : sim::figure_kinds())
    out += fmt::format("  {:<12}  {}\n", kind.name, kind.help);
  return out + "\nExit status: 0 done; 1 the page could not be written; 2 wrong usage.";
}

Result<> write_file(const std::string& path, const std::string& text) {
  FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return fail_errno("open " + path, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) return fail_errno("write " + path, errno);
  return {};
}

}  // namespace

int run_sim_cache(const Arguments& arguments) {
  Asked asked;
  const CommandLine command{.name = "ballast sim cache",
                            .summary = "simulates the cache tier at scale and prints a figure",
                            .flags = sim_flags(asked),
                            .footer = footer()};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  if (const std::string conflict = find_conflict(asked); !conflict.empty())
    return usage_error(command.name, conflict + " (see ballast sim cache --help)");
  telemetry::Progress progress;
  asked.options.progress = [&](size_t done, size_t of) {
    progress.report(now_ns(), fmt::format("{}: {} of {} runs", asked.figure, done, of));
  };
  const sim::Figure figure = sim::find_figure(asked.figure)->make(asked.options);
  progress.finish();
  std::fputs(
      (asked.json ? sim::figure_json(figure, asked.options) : sim::figure_text(figure)).c_str(),
      stdout);
  if (asked.plot.empty()) return kExitDone;
  if (const Result<> written = write_file(asked.plot, sim::figure_html(figure)); !written) {
    std::fprintf(stderr, "%s: --plot: %s\n", command.name.c_str(), written.error().message.c_str());
    return kExitFailed;
  }
  return kExitDone;
}

}  // namespace ballast::app
