// SPDX-License-Identifier: Apache-2.0
// ballast sim cache: figures of the tier at scale, by the product's own placement and choice.
#include <fmt/format.h>

#include "app/flag_values.h"
#include "app/sim_figure.h"
#include "balance/placement.h"
#include "sim/cache_figures.h"

namespace ballast::app {
namespace {

constexpr uint32_t kMostObjects = 1'000'000'000;
constexpr uint32_t kMostNodes = 4096;
constexpr uint32_t kMostHeld = 100'000;
constexpr size_t kMostHeldInAll = 8'000'000;
constexpr uint32_t kMostRouters = 100'000;

constexpr const char* kTierGroup = "Tier";
constexpr const char* kLoadGroup = "Requests and queues";

Result<> set_skew(double& alpha, const std::string& text) {
  const auto number = parse_rate(text);
  if (!number) return Unexpected(number.error());
  if (*number > 4) return fail(ErrorCode::kInvalid, fmt::format("\"{}\": from 0 to 4", text));
  alpha = *number;
  return {};
}

std::vector<Flag> tier_flags(sim::CacheFigureOptions& options) {
  sim::Scenario& scenario = options.scenario;
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

std::vector<Flag> load_flags(sim::CacheFigureOptions& options) {
  sim::Scenario& scenario = options.scenario;
  sim::QueueingOptions& queueing = options.queueing;
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
      {"--writes", "SHARE", "share of writes, where the figure does not sweep it, e.g. 2%", "0",
       kLoadGroup, false, share_into(scenario.writes)},
      {"--bench-keys", "",
       "place the keys of ballast bench on the spines of ballast cache up, as a real tier does", "",
       kLoadGroup, false, switch_into(scenario.bench_keys)},
      {"--routers", "COUNT", "routers, each with loads of its own", "32", kLoadGroup, false,
       count_into(queueing.routers, kMostRouters)},
      {"--sample", "COUNT", "with admission, one in so many reads of other objects goes to a node",
       "64", kLoadGroup, false, count_into(queueing.sample, 1'000'000)},
      {"--telemetry", "DURATION", "least time between a node's reports to one router", "each reply",
       kLoadGroup, false, duration_into(queueing.telemetry)},
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

std::vector<Flag> sim_flags(sim::CacheFigureOptions& options) {
  std::vector<Flag> flags = tier_flags(options);
  for (Flag& flag : load_flags(options)) flags.push_back(std::move(flag));
  flags.push_back({"--seconds", "S", "simulated time that is measured", "2", kLoadGroup, false,
                   [&options](const std::string& text) -> Result<> {
                     double seconds = 0;
                     const Result<> set = positive_into(seconds, 3600)(text);
                     if (set) options.timing.measured = static_cast<Nanos>(seconds * kSecond);
                     return set;
                   }});
  return flags;
}

// What single flags cannot see.
std::string find_conflict(const sim::CacheFigureOptions& options) {
  const sim::Scenario& scenario = options.scenario;
  if (scenario.servers() > balance::kSlots)
    return fmt::format("--racks {} with --servers {}: more than {} servers", scenario.racks,
                       scenario.servers_per_rack, balance::kSlots);
  if (scenario.nodes() * scenario.objects_per_node > kMostHeldInAll)
    return fmt::format("--objects-per-node {}: more than {} objects in all nodes",
                       scenario.objects_per_node, kMostHeldInAll);
  return "";
}

}  // namespace

int run_sim_cache(const Arguments& arguments) {
  sim::CacheFigureOptions options;
  const auto kinds = sim::cache_figures();
  return run_figure_command({.name = "ballast sim cache",
                             .summary = "simulates the cache tier at scale and prints a figure",
                             .figures = names_of(kinds),
                             .flags = sim_flags(options),
                             .runs = &options.runs,
                             .find_conflict = [&] { return find_conflict(options); },
                             .make =
                                 [&](size_t i) {
                                   sim::Figure figure = kinds[i].make(options);
                                   figure.settings = sim::settings_of(options);
                                   return figure;
                                 }},
                            arguments);
}

}  // namespace ballast::app
