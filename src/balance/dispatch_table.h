// SPDX-License-Identifier: Apache-2.0
// The two-stage dispatch table of a VIP: instances in classes of equal weight. The choice is
// integer arithmetic alone, as a packet path makes it. Spotlight, arXiv 1806.08455.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/dispatch.h"

namespace ballast::balance {

// Two independent hashes of a flow, one for each stage.
using FlowHash = bl_flow_hash;
// From any identifier of the flow; equal for equal seeds, independent for different ones.
FlowHash flow_hash(uint64_t flow, uint64_t seed);

// P(instance) = its weight / sum of all, to 2^-32 of each stage. Equal weights are ECMP, fixed ones
// WCMP, awfd_weights() AWFD.
class DispatchTable {
 public:
  static constexpr size_t kMostInstances = 65'536;
  static constexpr uint32_t kMostWeight = 65'535;

  using Class = bl_dispatch_class;

  // Weight 0 is never chosen; weights not all 0, each at most kMostWeight, their number at most
  // kMostInstances.
  explicit DispatchTable(std::span<const uint32_t> weights);

  // Index of an instance; by the code that the packet path runs.
  uint16_t choose(FlowHash hash) const {
    return members_[bl_dispatch(classes_.data(), static_cast<uint32_t>(classes_.size()), total_,
                                hash)];
  }

  // Heaviest first, so that the cascade is short; none is empty.
  std::span<const Class> classes() const { return classes_; }
  std::span<const uint16_t> members() const { return members_; }
  uint32_t total() const { return total_; }

 private:
  std::vector<Class> classes_;
  std::vector<uint16_t> members_;  // by class
  uint32_t total_ = 0;             // sum of the weights, below 2^32 by the two limits
};

}  // namespace ballast::balance
