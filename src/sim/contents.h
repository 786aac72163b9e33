// SPDX-License-Identifier: Apache-2.0
// What simulated nodes hold when the product's admission decides it from what they are asked.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "balance/admission.h"
#include "base/clock.h"
#include "sim/layout.h"

namespace ballast::sim {

class Contents {
 public:
  // The holders of a layout's objects are the nodes that may hold them; all start empty.
  Contents(const Layout& layout, size_t objects_per_node, uint64_t seed);

  // `holder` counts among the object's holders.
  bool holds(uint32_t object, size_t holder) const {
    return held_[layout_->cached[object].first + holder];
  }
  // The node is asked for the object, for `weight` such requests. True if it takes it up now, and
  // so drops another if it is full.
  bool observe(uint32_t object, size_t holder, uint32_t weight);
  void tick(Nanos now);  // every few milliseconds to hundreds of them

 private:
  uint64_t key(uint32_t object) const;
  void drop(uint16_t node, uint64_t key);

  const Layout* layout_;
  uint64_t seed_;
  std::vector<balance::Admission> nodes_;
  std::vector<bool> held_;                                 // by place in Layout::holders
  boost::unordered_flat_map<uint64_t, uint32_t> objects_;  // by key, those ever taken up
};

}  // namespace ballast::sim
