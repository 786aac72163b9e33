// SPDX-License-Identifier: Apache-2.0
// The fluid model: the largest total rate at which requests, divisible at will, can be split so
// that no node and no server gets more than its capacity. DistCache, section 3.2 (the matching).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/layout.h"

namespace ballast::sim {

// Rates in the unit of the capacities.
struct Bound {
  double rate = 0;         // what the whole tier can carry: the smaller of the two below
  double server_rate = 0;  // until the busiest server is full; infinite without servers' work
  size_t server = 0;       // that server
  double node_rate = 0;    // until the nodes are full; infinite if nothing is cached
  // The object set J and its nodes Γ(J) that set node_rate: above it their requests exceed the
  // capacity of Γ(J). J indexes Layout::cached; empty if writes alone fill the node in Γ(J).
  std::vector<uint32_t> tight_objects;
  std::vector<uint16_t> tight_nodes;

  bool server_bound() const { return server_rate <= node_rate; }
};

// A random split has no freedom: each of an object's holders gets an equal share.
Bound fluid_bound(const Layout& layout);

// Work at each server and node per unit of total rate, apart from reads that find a copy.
std::vector<double> server_work(const Layout& layout);
std::vector<double> node_write_work(const Layout& layout);

// The theorem's condition max p·R <= T/2 holds up to this rate.
double theorem_rate(const Layout& layout);

}  // namespace ballast::sim
