// SPDX-License-Identifier: Apache-2.0
// An instance whose flows share its capacity evenly, none faster than a limit (processor sharing).
// Virtual time, the bytes that each flow has had, makes an arrival or an end O(log flows).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ballast::sim {

// Times are seconds and must not go back; sizes and work are bytes.
class SharedInstance {
 public:
  struct Flow {
    double arrived = 0;
    uint32_t tag = 0;
  };

  // `capacity` > 0 and `flow_rate` > 0 in bytes a second, the latter may be infinite. A flow that
  // finds `most_flows` is refused.
  SharedInstance(double capacity, double flow_rate, size_t most_flows);

  // Other load takes this share of the capacity (0 to 1) before the flows.
  void set_background(double share, double now);
  bool offer(double size, uint32_t tag, double now);
  // When the next flow ends if nothing comes; infinite if there is none or nothing is left for it.
  double next_end() const;
  // Takes out the flow that ends at `now`, which is next_end().
  Flow end_next(double now);
  void advance(double now);

  size_t flows() const { return flows_.size(); }
  double capacity() const { return capacity_; }
  double available() const { return available_; }  // what other load leaves of the capacity
  double flow_rate() const { return rate_; }       // of each flow at present

  // Integrals until the last advance(): the flows' bytes done, those and the other load's, and what
  // the other load left.
  double served() const { return served_; }
  double used() const { return used_; }
  double offerable() const { return offerable_; }
  double unfinished() const;  // bytes that the flows still want; O(flows)

 private:
  struct Entry {
    double end = 0;  // in virtual time
    Flow flow = {};
    // The heap's front is to end first.
    bool operator<(const Entry& other) const { return end > other.end; }
  };
  void set_rate();

  double capacity_;
  double most_rate_;
  size_t most_flows_;
  double available_;
  double rate_ = 0;
  double now_ = 0;
  double virtual_ = 0;
  double served_ = 0;
  double used_ = 0;
  double offerable_ = 0;
  std::vector<Entry> flows_;  // a heap
};

}  // namespace ballast::sim
