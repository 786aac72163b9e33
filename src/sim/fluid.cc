// SPDX-License-Identifier: Apache-2.0
#include "sim/fluid.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/max_flow.h"

namespace ballast::sim {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr int kMostSteps = 200;  // about five are taken
constexpr double kConverged = 1 - 1e-11;

// The node that fills first under fixed work.
void bound_by_fixed_work(const std::vector<double>& work, double capacity, Bound& bound) {
  bound.node_rate = kUnbounded;
  for (size_t node = 0; node < work.size(); ++node) {
    if (work[node] <= 0 || capacity / work[node] >= bound.node_rate) continue;
    bound.node_rate = capacity / work[node];
    bound.tight_nodes = {static_cast<uint16_t>(node)};
  }
}

void bound_random_split(const Layout& layout, Bound& bound) {
  std::vector<double> work = node_write_work(layout);
  for (const CachedObject& object : layout.cached) {
    const double part = object.share * layout.scenario.copy_reads() / object.copies;
    for (const uint16_t node : layout.holders_of(object)) work[node] += part;
  }
  bound_by_fixed_work(work, layout.scenario.capacity_of_node(), bound);
  if (bound.tight_nodes.empty()) return;
  for (size_t i = 0; i < layout.cached.size(); ++i) {
    const auto holders = layout.holders_of(layout.cached[i]);
    if (std::find(holders.begin(), holders.end(), bound.tight_nodes[0]) != holders.end())
      bound.tight_objects.push_back(static_cast<uint32_t>(i));
  }
}

// The rate at which J fills its nodes.
double rate_of(const Layout& layout, const Cut& cut, const std::vector<double>& fixed) {
  double work = 0;
  for (const uint32_t i : cut.objects)
    work += layout.cached[i].share * layout.scenario.copy_reads();
  for (const uint16_t node : cut.nodes) work += fixed[node];
  return layout.scenario.capacity_of_node() * static_cast<double>(cut.nodes.size()) / work;
}

Cut everything(const Layout& layout) {
  Cut all;
  all.objects.resize(layout.cached.size());
  std::iota(all.objects.begin(), all.objects.end(), 0U);
  all.nodes.assign(layout.holders.begin(), layout.holders.end());
  std::sort(all.nodes.begin(), all.nodes.end());
  all.nodes.erase(std::unique(all.nodes.begin(), all.nodes.end()), all.nodes.end());
  return all;
}

// Discrete Newton (Dinkelbach): from a rate too high, the minimum cut is a set J that breaks
// Hall's condition; the rate that J allows is the next one. Each step finds a tighter set.
void bound_best_split(const Layout& layout, Bound& bound) {
  const double capacity = layout.scenario.capacity_of_node();
  const double reads = layout.scenario.copy_reads();
  const std::vector<double> fixed = node_write_work(layout);
  bound_by_fixed_work(fixed, capacity, bound);
  if (layout.cached.empty() || reads <= 0) return;
  const auto adopt = [&](Cut cut, double rate) {
    bound.node_rate = rate;
    bound.tight_objects = std::move(cut.objects);
    bound.tight_nodes = std::move(cut.nodes);
  };
  Cut all = everything(layout);
  const double first = rate_of(layout, all, fixed);
  if (first < bound.node_rate) adopt(std::move(all), first);
  FlowProblem problem;
  problem.demand.resize(layout.cached.size());
  problem.capacity.resize(fixed.size());
  for (const CachedObject& object : layout.cached)
    problem.holders.push_back(layout.holders_of(object));
  for (int step = 0; step < kMostSteps; ++step) {
    const double rate = bound.node_rate;
    for (size_t i = 0; i < layout.cached.size(); ++i)
      problem.demand[i] = layout.cached[i].share * reads * rate;
    for (size_t node = 0; node < fixed.size(); ++node)
      problem.capacity[node] = std::max(0.0, capacity - fixed[node] * rate);
    Cut cut = find_cut(problem);
    if (cut.objects.empty()) return;
    const double next = rate_of(layout, cut, fixed);
    if (next >= rate * kConverged) return;
    adopt(std::move(cut), next);
  }
}

}  // namespace

std::vector<double> server_work(const Layout& layout) {
  const double writes = layout.scenario.writes;
  std::vector<double> work = layout.cold_share;
  for (const CachedObject& object : layout.cached) {
    const double per_write = 1 + layout.scenario.cost.server_per_copy * object.copies;
    work[object.server] += object.share * (writes * per_write + layout.scenario.direct);
  }
  return work;
}

std::vector<double> node_write_work(const Layout& layout) {
  std::vector<double> work(layout.scenario.nodes(), 0.0);
  const double per_share = layout.scenario.writes * layout.scenario.cost.node_per_copy;
  for (const CachedObject& object : layout.cached) {
    for (const uint16_t node : layout.holders_of(object)) work[node] += object.share * per_share;
  }
  return work;
}

double theorem_rate(const Layout& layout) {
  return layout.scenario.capacity_of_node() / 2 / layout.hottest_share;
}

Bound fluid_bound(const Layout& layout) {
  Bound bound;
  const std::vector<double> work = server_work(layout);
  const auto busiest = std::max_element(work.begin(), work.end());
  bound.server = static_cast<size_t>(busiest - work.begin());
  bound.server_rate = *busiest > 0 ? layout.scenario.server_capacity / *busiest : kUnbounded;
  if (layout.scenario.scheme == Scheme::kRandomSplit) {
    bound_random_split(layout, bound);
  } else {
    bound_best_split(layout, bound);
  }
  bound.rate = std::min(bound.server_rate, bound.node_rate);
  return bound;
}

}  // namespace ballast::sim
