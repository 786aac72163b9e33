// SPDX-License-Identifier: Apache-2.0
#include "sim/max_flow.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

#include <algorithm>
#include <numeric>

namespace ballast::sim {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Graph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, int64_t,
        boost::property<boost::edge_residual_capacity_t, int64_t,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

// Flows are whole numbers, this many in all: in doubles push-relabel may never come to rest.
constexpr double kUnits = 1125899906842624.0;  // 2^50
constexpr size_t kRoundingUnits = 1024;        // one part in 10^12

class Network {
 public:
  explicit Network(const FlowProblem& problem)
      : problem_(problem),
        objects_(problem.demand.size()),
        graph_(objects_ + problem.capacity.size() + 2),
        source_(objects_ + problem.capacity.size()),
        sink_(source_ + 1) {
    const double sum = std::accumulate(problem.demand.begin(), problem.demand.end(), 0.0);
    scale_ = sum > 0 ? kUnits / sum : 0;
    for (size_t i = 0; i < objects_; ++i) {
      const int64_t demand = units(problem.demand[i]);
      demand_ += demand;
      add_edge(source_, i, demand);
      for (const uint16_t node : problem.holders[i]) add_edge(i, objects_ + node, demand);
    }
    for (size_t node = 0; node < problem.capacity.size(); ++node) {
      add_edge(objects_ + node, sink_, units(std::min(problem.capacity[node], 2 * sum)));
    }
  }

  // What the flow cannot carry, in units.
  int64_t shortfall() { return demand_ - boost::push_relabel_max_flow(graph_, source_, sink_); }

  // What the source still reaches once the flow is there: the minimum cut's side.
  Cut source_side() const {
    std::vector<bool> seen(boost::num_vertices(graph_));
    std::vector<size_t> queue{source_};
    seen[source_] = true;
    const auto residual = boost::get(boost::edge_residual_capacity, graph_);
    while (!queue.empty()) {
      const size_t at = queue.back();
      queue.pop_back();
      for (auto [edge, end] = boost::out_edges(at, graph_); edge != end; ++edge) {
        const size_t next = boost::target(*edge, graph_);
        if (seen[next] || residual[*edge] <= 0) continue;
        seen[next] = true;
        queue.push_back(next);
      }
    }
    return collect(seen);
  }

 private:
  // The holders are taken from the objects: an edge that is full to the unit is no border.
  Cut collect(const std::vector<bool>& seen) const {
    Cut cut;
    std::vector<bool> held(problem_.capacity.size());
    for (size_t i = 0; i < objects_; ++i) {
      if (!seen[i] || problem_.demand[i] <= 0) continue;
      cut.objects.push_back(static_cast<uint32_t>(i));
      for (const uint16_t node : problem_.holders[i]) held[node] = true;
    }
    for (size_t node = 0; node < held.size(); ++node) {
      if (held[node]) cut.nodes.push_back(static_cast<uint16_t>(node));
    }
    return cut;
  }

  int64_t units(double amount) const { return static_cast<int64_t>(amount * scale_); }

  void add_edge(size_t from, size_t to, int64_t capacity) {
    const auto forth = boost::add_edge(from, to, graph_).first;
    const auto back = boost::add_edge(to, from, graph_).first;
    boost::put(boost::edge_capacity, graph_, forth, capacity);
    boost::put(boost::edge_capacity, graph_, back, 0);
    boost::put(boost::edge_reverse, graph_, forth, back);
    boost::put(boost::edge_reverse, graph_, back, forth);
  }

  const FlowProblem& problem_;
  size_t objects_;
  Graph graph_;
  size_t source_;
  size_t sink_;
  double scale_ = 0;
  int64_t demand_ = 0;
};

}  // namespace

Cut find_cut(const FlowProblem& problem) {
  Network network(problem);
  const auto rounding =
      static_cast<int64_t>(problem.demand.size() + problem.capacity.size() + kRoundingUnits);
  return network.shortfall() <= rounding ? Cut{} : network.source_side();
}

}  // namespace ballast::sim
