// SPDX-License-Identifier: Apache-2.0
#include "sim/contents.h"

#include <algorithm>

#include "balance/hash.h"

namespace ballast::sim {

Contents::Contents(const Layout& layout, size_t objects_per_node, uint64_t seed)
    : layout_(&layout), seed_(seed), held_(layout.holders.size()) {
  for (size_t node = 0; node < layout.scenario.nodes(); ++node) {
    nodes_.emplace_back(balance::AdmissionOptions{.objects = objects_per_node,
                                                  .seed = balance::mix(seed, node + 1)});
  }
}

uint64_t Contents::key(uint32_t object) const { return balance::mix(object, seed_); }

bool Contents::observe(uint32_t object, size_t holder, uint32_t weight) {
  const size_t place = layout_->cached[object].first + holder;
  const uint16_t node = layout_->holders[place];
  const auto decision = nodes_[node].observe(key(object), weight);
  if (!decision.admit) return false;
  if (decision.victim) drop(node, *decision.victim);
  nodes_[node].held(key(object), 1);
  held_[place] = true;
  objects_[key(object)] = object;
  return true;
}

void Contents::tick(Nanos now) {
  for (uint16_t node = 0; node < nodes_.size(); ++node) {
    nodes_[node].tick(now);
    while (const auto cold = nodes_[node].expel()) drop(node, *cold);
  }
}

void Contents::drop(uint16_t node, uint64_t key) {
  const CachedObject& object = layout_->cached[objects_.at(key)];
  const auto holders = layout_->holders_of(object);
  const auto holder = std::find(holders.begin(), holders.end(), node);
  held_[object.first + static_cast<size_t>(holder - holders.begin())] = false;
}

}  // namespace ballast::sim
