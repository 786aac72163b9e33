// SPDX-License-Identifier: Apache-2.0
#include "sim/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "sim/fluid.h"
#include "sim/queueing.h"

namespace ballast::sim {
namespace {

constexpr size_t kLeastHead = size_t{1} << 16;
constexpr double kObjectsStep = 1.1;        // how finely the objects of a node are searched
constexpr double kSimulatedRate = 200'000;  // requests a simulated second, at most about

// A tier of the search; what else there is comes from the target.
struct Size {
  size_t racks = 0;
  size_t spines = 0;
  size_t objects = 0;  // of each node
  size_t nodes() const { return racks + spines; }
};

class Planner {
 public:
  Planner(const DemandOf& demand, const Target& target) : demand_(demand), target_(target) {}

  Plan plan();

 private:
  Scenario scenario(const Size& size, Scheme scheme, size_t run) const;
  Layout layout(const Scenario& scenario);
  double wanted() const { return target_.wanted() / target_.server_rate; }
  bool no_cache_carries();
  double hottest_reads() const;
  size_t fewest_spines() const;
  size_t most_objects(const Size& size) const;
  bool servers_carry(const Size& size);
  size_t fewest_objects(Size size);
  bool nodes_carry(const Size& size);
  bool find_size(Size& size);
  void compare(const Size& size, Plan& plan);
  void describe(const Size& size, Plan& plan);
  std::string why_never() const;
  std::string why_not(const Size& size);
  void say(const std::string& stage) const {
    if (target_.progress) target_.progress(stage);
  }

  const DemandOf& demand_;
  const Target& target_;
  bool more_copies_ = false;
  Demand made_;
  size_t made_for_ = 0;
};

Scenario Planner::scenario(const Size& size, Scheme scheme, size_t run) const {
  Scenario scenario;
  scenario.racks = std::max<size_t>(1, size.racks);
  scenario.server_count = target_.servers;
  scenario.servers_per_rack = target_.servers / scenario.racks;
  scenario.spines = std::max<size_t>(1, size.spines);
  scenario.objects_per_node = size.objects;
  scenario.scheme = scheme;
  scenario.seed = target_.seed + run;
  scenario.server_capacity = 1;
  scenario.node_capacity = target_.node_rate / target_.server_rate;
  scenario.writes = target_.writes;
  scenario.direct = target_.direct;
  scenario.more_copies_at = scheme == Scheme::kDistCache && more_copies_ ? wanted() : 0;
  return scenario;
}

Layout Planner::layout(const Scenario& scenario) {
  const size_t head = std::max(kLeastHead, 8 * scenario.nodes() * scenario.objects_per_node);
  if (head != made_for_) {
    made_ = demand_(head);
    made_for_ = head;
  }
  return make_layout(scenario, made_);
}

bool Planner::no_cache_carries() {
  for (size_t run = 0; run < target_.runs; ++run) {
    if (fluid_bound(layout(scenario({}, Scheme::kNoCache, run))).rate < wanted()) return false;
  }
  return true;
}

// Of the hottest object, in units of one server's rate.
double Planner::hottest_reads() const {
  const double share = made_.head.empty() ? 0 : made_.head.front();
  return share * (1 - target_.writes - target_.direct) * wanted();
}

// With fewer, either the nodes and servers together, or all spines and a leaf for the hottest
// object, are too slow.
size_t Planner::fewest_spines() const {
  const double node = target_.node_rate / target_.server_rate;
  const double for_all = (wanted() - static_cast<double>(target_.servers)) / node;
  const double for_hottest = hottest_reads() / node - 1;
  const double servers = static_cast<double>(target_.servers);
  const double spines = std::max({1.0, for_hottest, for_all / 2, for_all - servers});
  return static_cast<size_t>(std::ceil(std::min(spines, double{kMostPlannedNodes})));
}

size_t Planner::most_objects(const Size& size) const {
  return std::max<size_t>(
      1, std::min(target_.most_objects_per_node, kMostPlannedCopies / size.nodes()));
}

bool Planner::servers_carry(const Size& size) {
  for (size_t run = 0; run < target_.runs; ++run) {
    const std::vector<double> work = server_work(layout(scenario(size, Scheme::kDistCache, run)));
    if (*std::max_element(work.begin(), work.end()) * wanted() > 1) return false;
  }
  return true;
}

// Objects a node from which on the servers carry what the nodes leave them; 0 if none do.
size_t Planner::fewest_objects(Size size) {
  const size_t most = most_objects(size);
  size_t low = 0;
  size_t high = 1;
  for (;; low = high, high = std::min(most, 2 * high)) {
    size.objects = high;
    if (servers_carry(size)) break;
    if (high == most) return 0;
  }
  while (static_cast<double>(high) > static_cast<double>(low) * kObjectsStep && high - low > 1) {
    size.objects = (low + high) / 2;
    (servers_carry(size) ? high : low) = size.objects;
  }
  return high;
}

bool Planner::nodes_carry(const Size& size) {
  for (size_t run = 0; run < target_.runs; ++run) {
    if (fluid_bound(layout(scenario(size, Scheme::kDistCache, run))).rate < wanted()) return false;
  }
  return true;
}

// The first tier in the order of its number of spines that carries the wanted rate. Else false, and
// `size` is the last one tried. Not many more spines than capacity asks for, or than there are
// servers: where the hottest objects nearly fill their nodes, only a great many would keep all
// other objects away from them.
bool Planner::find_size(Size& size) {
  size = {};
  const size_t fewest = fewest_spines();
  const size_t most = std::max(target_.servers, 2 * fewest);
  for (size_t spines = fewest;; spines += std::max<size_t>(1, spines / 8)) {
    const Size next{std::min(spines, target_.servers), spines, 0};
    if (size.spines > 0 && (spines > most || next.nodes() > kMostPlannedNodes)) return false;
    size = next;
    say(fmt::format("trying {} leaves and {} spines", size.racks, size.spines));
    const size_t objects = fewest_objects(size);
    size.objects = objects > 0 ? objects : most_objects(size);
    // More nodes do not help servers that even so many copies leave too much work.
    if (objects == 0 && size.objects * size.nodes() >= kMostPlannedCopies * 9 / 10) return false;
    if (objects > 0 && nodes_carry(size)) return true;
  }
}

std::string binding(const Bound& bound, const Layout& layout) {
  if (bound.server_bound()) return fmt::format("the busiest server, number {}", bound.server);
  if (bound.tight_objects.empty()) return "a node's writes";
  return fmt::format("{} object{} on {} node{}, the hottest of rank {}", bound.tight_objects.size(),
                     bound.tight_objects.size() == 1 ? "" : "s", bound.tight_nodes.size(),
                     bound.tight_nodes.size() == 1 ? "" : "s",
                     layout.cached[bound.tight_objects.front()].rank + 1);
}

void Planner::compare(const Size& size, Plan& plan) {
  struct Row {
    Scheme scheme;
    bool more_copies;
  };
  std::vector<Row> rows{{Scheme::kNoCache, false}};
  if (size.spines > 0) {
    rows.insert(
        rows.end(),
        {{Scheme::kPartition, false}, {Scheme::kReplication, false}, {Scheme::kDistCache, false}});
    if (!plan.copies_wanted.empty()) rows.push_back({Scheme::kDistCache, true});
  }
  for (const Row& row : rows) {
    say(fmt::format("comparing: {}", scheme_name(row.scheme)));
    MechanismRate result{row.scheme, row.more_copies, {}, 0, ""};
    std::vector<double> rates;
    for (size_t run = 0; run < target_.runs; ++run) {
      Scenario each = scenario(size, row.scheme, run);
      each.more_copies_at = row.more_copies ? wanted() : 0;
      const Layout placed = layout(each);
      const Bound bound = fluid_bound(placed);
      rates.push_back(bound.rate * target_.server_rate);
      if (run > 0 && rates.back() >= result.least) continue;
      result.least = rates.back();
      result.bound_by = binding(bound, placed);
    }
    result.rate = estimate(rates);
    plan.mechanisms.push_back(std::move(result));
  }
}

void Planner::describe(const Size& size, Plan& plan) {
  plan.tier = scenario(size, Scheme::kDistCache, 0);
  const Layout placed = layout(plan.tier);
  const Bound bound = fluid_bound(placed);
  const double rate = target_.rate / target_.server_rate;
  plan.cached_share = placed.cached_share;
  plan.cached_objects = placed.cached.size();
  plan.busiest_server = rate / bound.server_rate;
  plan.busiest_nodes = rate / bound.node_rate;
  plan.theorem_margin = theorem_rate(placed) / rate;
  const double quarter = plan.tier.capacity_of_node() / 4;
  for (const double share : made_.head) {
    if (share * wanted() <= 2 * quarter) break;
    plan.copies_wanted.push_back(static_cast<size_t>(std::ceil(share * wanted() / quarter)));
  }
  const auto racks = static_cast<double>(size.racks);
  const double servers = std::max(1.0, static_cast<double>(target_.servers) / racks);
  plan.formula_objects =
      racks * servers * std::log2(servers) +
      static_cast<double>(size.spines) * std::log2(static_cast<double>(size.spines));
  say("simulating request by request");
  QueueingOptions options;
  options.rate = rate;
  options.requests_per_unit = std::clamp(kSimulatedRate / rate, 50.0, 1000.0);
  options.seed = target_.seed;
  plan.lost = measure(placed, options, {}).loss();
}

// What makes the wanted rate impossible whatever the tier; empty if nothing does.
std::string Planner::why_never() const {
  const double all_servers = target_.server_rate * static_cast<double>(target_.servers);
  const double passing = (target_.writes + target_.direct) * target_.wanted();
  const double hottest_writes = made_.head.front() * target_.writes * target_.wanted();
  if (hottest_writes > target_.server_rate) {
    return fmt::format(
        "the writes to the hottest key alone would be {:.0f} a second, one server answers {:.0f}, "
        "and no cache takes writes",
        hottest_writes, target_.server_rate);
  }
  if (passing > all_servers) {
    return fmt::format(
        "writes and reads that no copy answers would be {:.0f} a second, and the servers together "
        "answer {:.0f}",
        passing, all_servers);
  }
  return "";
}

std::string Planner::why_not(const Size& size) {
  const Layout placed = layout(scenario(size, Scheme::kDistCache, 0));
  const Bound bound = fluid_bound(placed);
  const double two_nodes = 2 * target_.node_rate;
  const double reads = hottest_reads() * target_.server_rate;
  if (!more_copies_ && reads > two_nodes) {
    return fmt::format(
        "the reads of the hottest key would be {:.0f} a second, and its two copies answer {:.0f}",
        reads, two_nodes);
  }
  const std::string with = fmt::format("with {} leaves and {} spines of {} objects each",
                                       size.racks, size.spines, size.objects);
  if (bound.server_bound()) {
    return fmt::format(
        "{} the busiest server would still get {:.0f} requests a second, {:.0f} % of them for keys "
        "without a copy, and it answers {:.0f}",
        with, target_.wanted() / bound.server_rate,
        100 * placed.cold_share[bound.server] * bound.server_rate, target_.server_rate);
  }
  return fmt::format("{} the nodes carry {:.0f} requests a second of the {:.0f} wanted", with,
                     bound.node_rate * target_.server_rate, target_.wanted());
}

Plan Planner::plan() {
  Plan plan;
  Size size;
  if (no_cache_carries()) {
    compare(size, plan);
    plan.tier = scenario(size, Scheme::kNoCache, 0);
    plan.reason = fmt::format("without one the servers carry {:.0f} requests a second",
                              plan.mechanisms.front().least);
    return plan;
  }
  plan.reason = why_never();
  plan.verdict = Plan::Verdict::kImpossible;
  if (!plan.reason.empty()) {
    compare(size, plan);
    plan.tier = scenario(size, Scheme::kNoCache, 0);
    return plan;
  }
  const bool two_may_do = hottest_reads() * target_.server_rate <= 2 * target_.node_rate;
  if (two_may_do && find_size(size)) {
    plan.verdict = Plan::Verdict::kPlanned;
  } else {
    plan.reason = why_not(size);
    more_copies_ = true;
    const bool found = find_size(size);
    if (found) plan.verdict = Plan::Verdict::kMoreCopies;
    if (!found) plan.reason = why_not(size);
  }
  describe(size, plan);
  compare(size, plan);
  return plan;
}

}  // namespace

Plan make_plan(const DemandOf& demand, const Target& target) {
  BALLAST_CHECK(target.rate > 0 && target.server_rate > 0 && target.node_rate > 0);
  BALLAST_CHECK(target.servers >= 1 && target.servers <= balance::kSlots && target.runs >= 1);
  return Planner(demand, target).plan();
}

}  // namespace ballast::sim
