// SPDX-License-Identifier: Apache-2.0
// The two-stage dispatch table of a VIP: instances in classes of equal weight. The choice is
// integer arithmetic alone, as a packet path makes it. Spotlight, arXiv 1806.08455.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ballast::balance {

// Two independent hashes of a flow, one for each stage.
struct FlowHash {
  uint32_t of_class = 0;
  uint32_t of_member = 0;
};
// From any identifier of the flow; equal for equal seeds, independent for different ones.
FlowHash flow_hash(uint64_t flow, uint64_t seed);

// P(instance) = its weight / sum of all, to 2^-32 of each stage. Equal weights are ECMP, fixed ones
// WCMP, awfd_weights() AWFD.
class DispatchTable {
 public:
  static constexpr size_t kMostInstances = 65'536;
  static constexpr uint32_t kMostWeight = 65'535;

  struct Class {
    uint32_t below = 0;  // draws under this, and not under the class before's, are this class's
    uint32_t first = 0;  // of its members
    uint32_t size = 0;
  };

  // Weight 0 is never chosen; weights not all 0, each at most kMostWeight, their number at most
  // kMostInstances.
  explicit DispatchTable(std::span<const uint32_t> weights);

  // Index of an instance.
  uint16_t choose(FlowHash hash) const {
    const uint32_t draw = scale(hash.of_class, total_);
    const Class* chosen = classes_.data();
    while (!(draw < chosen->below)) ++chosen;
    return members_[chosen->first + scale(hash.of_member, chosen->size)];
  }

  // Heaviest first, so that the cascade is short; none is empty.
  std::span<const Class> classes() const { return classes_; }
  std::span<const uint16_t> members() const { return members_; }
  uint32_t total() const { return total_; }

 private:
  // A uniform 32-bit value to [0, n).
  static uint32_t scale(uint32_t value, uint32_t n) {
    return static_cast<uint32_t>((uint64_t{value} * n) >> 32);
  }

  std::vector<Class> classes_;
  std::vector<uint16_t> members_;  // by class
  uint32_t total_ = 0;             // sum of the weights, below 2^32 by the two limits
};

}  // namespace ballast::balance
