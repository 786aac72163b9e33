// SPDX-License-Identifier: Apache-2.0
// ballast sim lb: figures of dispatching flows to instances, by the product's own weights and
// tables.
#include <fmt/format.h>

#include <limits>

#include "app/flag_values.h"
#include "app/read_file.h"
#include "app/sim_figure.h"
#include "sim/lb_figures.h"

namespace ballast::app {
namespace {

constexpr uint32_t kMostInstances = 4096;
constexpr uint32_t kMostBalancers = 1000;
constexpr uint32_t kMostM = 1024;
constexpr double kMostFlows = 2e8;    // of one run
constexpr double kMostPolls = 2e8;    // of single instances, in one run
constexpr double kMegabit = 125'000;  // bytes

constexpr const char* kInstanceGroup = "Instances";
constexpr const char* kFlowGroup = "Flows";
constexpr const char* kBalancerGroup = "Balancers";
constexpr const char* kOutputGroup = "Output";

struct Asked {
  sim::LbFigureOptions options;
  bool law_given = false;
  bool file_given = false;
  double mean = 0;  // 0: not given
};

// In Mbit/s, kept in bytes a second.
auto megabits_into(double& target) {
  return [&target](const std::string& text) -> Result<> {
    const Result<> set = positive_into(target, 1e6)(text);
    if (set) target *= kMegabit;
    return set;
  };
}

Result<> set_m(uint32_t& m, const std::string& text) {
  const auto count = parse_count(text);
  if (!count) return Unexpected(count.error());
  if (*count > kMostM)
    return fail(ErrorCode::kInvalid, fmt::format("\"{}\": from 0 to {}", text, kMostM));
  m = *count;
  return {};
}

Result<> set_other_load(double& most, const std::string& text) {
  const auto share = parse_share(text);
  if (!share) return Unexpected(share.error());
  if (*share > 0.99) return fail(ErrorCode::kInvalid, fmt::format("\"{}\": at most 0.99", text));
  most = *share;
  return {};
}

Result<> set_interval(Nanos& interval, const std::string& text) {
  const Result<> set = duration_into(interval)(text);
  if (set && interval == 0) return fail(ErrorCode::kInvalid, fmt::format("\"{}\": above 0", text));
  return set;
}

Result<> set_law(Asked& asked, const std::string& text) {
  auto sizes = sim::FlowSizes::of_law(text, asked.options.model.sizes->mean());
  if (!sizes) return Unexpected(sizes.error());
  asked.options.model.sizes = std::move(*sizes);
  asked.law_given = true;
  return {};
}

Result<> set_file(Asked& asked, const std::string& path) {
  const auto text = read_file(path);
  if (!text) return fail(ErrorCode::kInvalid, fmt::format("{}: {}", path, text.error().message));
  auto sizes = sim::FlowSizes::parse(*text);
  if (!sizes) return fail(ErrorCode::kInvalid, fmt::format("{}: {}", path, sizes.error().message));
  asked.options.model.sizes = std::move(*sizes);
  asked.file_given = true;
  return {};
}

Result<> set_mean(double& mean, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) return Unexpected(bytes.error());
  if (*bytes == 0) return fail(ErrorCode::kInvalid, fmt::format("\"{}\": above 0", text));
  mean = static_cast<double>(*bytes);
  return {};
}

Result<> set_metric(std::optional<sim::FlowMetric>& metric, const std::string& text) {
  metric = sim::find_flow_metric(text);
  if (metric) return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("no metric \"{}\"; there are throughput, utilisation, completion, p99, "
                          "refused",
                          text));
}

std::vector<Flag> instance_flags(Asked& asked) {
  sim::LbFigureOptions& options = asked.options;
  sim::Background& other = options.model.background;
  return {
      {"--instances", "COUNT", "instances of the service", "100", kInstanceGroup, false,
       count_into(options.instances, kMostInstances)},
      {"--capacity", "MBIT/S", "of an instance, the mean", "1000", kInstanceGroup, false,
       megabits_into(options.capacity)},
      {"--spread", "RATIO", "the largest capacity in units of the least", "4", kInstanceGroup,
       false,
       [&options](const std::string& text) -> Result<> {
         const Result<> set = positive_into(options.spread, 1000)(text);
         if (set && options.spread < 1)
           return fail(ErrorCode::kInvalid, fmt::format("\"{}\": from 1", text));
         return set;
       }},
      {"--other-load", "SHARE", "of an instance that other work takes at the most", "0.9",
       kInstanceGroup, false,
       [&other](const std::string& text) { return set_other_load(other.most, text); }},
      {"--other-load-period", "DURATION", "mean time until it is another; 0s: never", "10s",
       kInstanceGroup, false, duration_into(other.period)},
      {"--accepted", "FACTOR",
       "flows an instance accepts, in units of those it serves at full rate", "2", kInstanceGroup,
       false, positive_into(options.model.accepted, 1e6)},
  };
}

std::vector<Flag> flow_flags(Asked& asked) {
  sim::FlowModelOptions& model = asked.options.model;
  sim::LbFigureOptions& options = asked.options;
  return {
      {"--load", "LOAD", "bytes offered, of those other work leaves, where not swept",
       "the figure's own", kFlowGroup, false,
       [&options](const std::string& text) -> Result<> {
         double load = 0;
         const Result<> set = positive_into(load, 2)(text);
         if (set) options.load = load;
         return set;
       }},
      {"--flow-rate", "MBIT/S", "the most that one flow takes", "20", kFlowGroup, false,
       megabits_into(model.flow_rate)},
      {"--flow-size", "SIZE", "mean of a flow", "1MB", kFlowGroup, false,
       [&asked](const std::string& text) { return set_mean(asked.mean, text); }},
      {"--size-law", "LAW", "fixed, exponential, lognormal, pareto, web-search or data-mining",
       "web-search", kFlowGroup, false,
       [&asked](const std::string& text) { return set_law(asked, text); }},
      {"--sizes", "FILE", "measured instead: lines of a size, or of a size and the share up to it",
       "", kFlowGroup, false, [&asked](const std::string& text) { return set_file(asked, text); }},
      {"--seconds", "S", "simulated time that is measured", "30", kFlowGroup, false,
       [&options](const std::string& text) -> Result<> {
         double seconds = 0;
         const Result<> set = positive_into(seconds, 3600)(text);
         if (set) options.measured = static_cast<Nanos>(seconds * kSecond);
         return set;
       }},
  };
}

std::vector<Flag> balancer_flags(Asked& asked) {
  sim::FlowModelOptions& model = asked.options.model;
  return {
      {"--m", "COUNT", "AWFD's largest weight, 0 to 1024", "16", kBalancerGroup, false,
       [&model](const std::string& text) { return set_m(model.m, text); }},
      {"--interval", "DURATION", "between a balancer's polls", "100ms", kBalancerGroup, false,
       [&model](const std::string& text) { return set_interval(model.interval, text); }},
      {"--missed", "SHARE", "of the polls of an instance that are lost", "0", kBalancerGroup, false,
       share_into(model.missed)},
      {"--balancers", "COUNT", "out of step with each other", "4", kBalancerGroup, false,
       count_into(model.balancers, kMostBalancers)},
      {"--metric", "NAME", "throughput, utilisation, completion, p99 or refused",
       "the figure's own", kOutputGroup, false,
       [&asked](const std::string& text) { return set_metric(asked.options.metric, text); }},
  };
}

std::vector<Flag> sim_flags(Asked& asked) {
  std::vector<Flag> flags = instance_flags(asked);
  for (Flag& flag : flow_flags(asked)) flags.push_back(std::move(flag));
  for (Flag& flag : balancer_flags(asked)) flags.push_back(std::move(flag));
  return flags;
}

// What single flags cannot see.
std::string find_conflict(Asked& asked) {
  sim::LbFigureOptions& options = asked.options;
  if (asked.law_given && asked.file_given) return "--sizes with --size-law: one of them";
  if (asked.mean > 0) options.model.sizes = options.model.sizes->with_mean(asked.mean);
  const sim::Timing timing = sim::timing_of(options);
  const double seconds = static_cast<double>(timing.warm_up + timing.measured) / kSecond;
  const auto instances = static_cast<double>(options.instances);
  const double mean = options.model.sizes->mean();
  const double flows = options.capacity * instances / mean * seconds;
  if (flows > kMostFlows)
    return fmt::format(
        "--flow-size {:g} with --flow-rate {:g}: {:.0f} million flows a run, more "
        "than {:.0f}",
        mean, options.model.flow_rate / kMegabit, flows / 1e6, kMostFlows / 1e6);
  const double polls = seconds * kSecond / static_cast<double>(options.model.interval) *
                       static_cast<double>(options.model.balancers) * instances;
  if (polls > kMostPolls)
    return fmt::format("--interval {} ms: {:.0f} million polls a run, more than {:.0f}",
                       options.model.interval / kMillisecond, polls / 1e6, kMostPolls / 1e6);
  return "";
}

}  // namespace

int run_sim_lb(const Arguments& arguments) {
  Asked asked;
  const auto kinds = sim::lb_figures();
  return run_figure_command(
      {.name = "ballast sim lb",
       .summary = "simulates dispatching flows to instances and prints a figure",
       .figures = names_of(kinds),
       .flags = sim_flags(asked),
       .runs = &asked.options.runs,
       .find_conflict = [&] { return find_conflict(asked); },
       .make =
           [&](size_t i) {
             sim::Figure figure = kinds[i].make(asked.options);
             figure.settings = sim::settings_of(asked.options);
             return figure;
           }},
      arguments);
}

}  // namespace ballast::app
