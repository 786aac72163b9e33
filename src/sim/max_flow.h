// SPDX-License-Identifier: Apache-2.0
// Can the demands of objects be split among the nodes that hold them? A maximum flow (push-relabel)
// and, where it falls short, the minimum cut. Boost Graph is named only in max_flow.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ballast::sim {

struct FlowProblem {
  std::vector<double> demand;                      // by object, >= 0
  std::vector<double> capacity;                    // by node, >= 0
  std::vector<std::span<const uint16_t>> holders;  // by object: nodes that may serve it
};

// Objects of the minimum cut and all their holders: the demand of the former exceeds the
// capacity of the latter. Both empty when all demand fits, to one part in 10^12.
struct Cut {
  std::vector<uint32_t> objects;
  std::vector<uint16_t> nodes;
};

Cut find_cut(const FlowProblem& problem);

}  // namespace ballast::sim
