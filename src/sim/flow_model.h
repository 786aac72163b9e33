// SPDX-License-Identifier: Apache-2.0
// The flow-level model of dispatching: flows arrive at random, balancers send each to an instance
// by what they know of it, and the flows of an instance share it. The weights, tables and choices
// are the product's. After the simulation of Spotlight, arXiv 1806.08455.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "balance/connection_counts.h"
#include "balance/dispatch_table.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/random.h"
#include "sim/event_times.h"
#include "sim/flow_sizes.h"
#include "sim/shared_instance.h"

namespace ballast::sim {

enum class Dispatching {
  kEcmp,              // by hash; knows nothing
  kWcmp,              // by hash and the instances' capacities; not what else loads them
  kLeastConnections,  // the capacities and this balancer's own open flows
  kTwoChoices,        // the same, of two by hash
  kLeastCongested,    // AWFD with m = 1
  kAwfd,              // the capacities and each instance's utilisation as last polled
  kIdeal,             // all flows and what is free at this moment: takes where a flow gets most
};
std::string_view dispatching_name(Dispatching dispatching);

// Other load on the instances, unknown to the balancers but in the utilisation. Each instance's
// share of it is drawn anew at random times, evenly from 0 to `most` or one of these two.
struct Background {
  double most = 0;  // below 1
  bool two_valued = false;
  Nanos period = 10 * kSecond;  // mean time between two draws; 0: drawn once
  double mean() const { return most / 2; }
};

struct FlowModelOptions {
  std::vector<double> capacities = {};  // of the instances, bytes a second
  double flow_rate = 0;                 // the most that one flow takes, bytes a second; > 0
  double load = 0.9;                    // bytes offered, of those that other load leaves; > 0
  std::optional<FlowSizes> sizes = {};  // required
  // An instance refuses flows beyond this many times those that it serves at their full rate.
  double accepted = 2;
  Background background = {};
  Dispatching dispatching = Dispatching::kAwfd;
  uint32_t m = 16;
  size_t balancers = 4;                 // a flow comes to any of them
  Nanos interval = 100 * kMillisecond;  // between a balancer's polls, out of step with the others'
  double missed = 0;                    // probability that a poll of an instance is lost
  uint64_t seed = 1;
};

struct FlowCounts {
  uint64_t arrived = 0;
  uint64_t refused = 0;
  uint64_t full_rate = 0;  // began with nothing but their own limit to slow them
  uint64_t ended = 0;
  double offered = 0;    // bytes of the flows that arrived
  double served = 0;     // bytes done
  double offerable = 0;  // bytes that could have been: what other load left of the capacity
  double seconds = 0;
  Histogram completion = {};  // ns, of the flows that ended

  double throughput() const { return served / seconds; }
  double utilisation() const { return served / offerable; }
  double refused_share() const { return share(refused); }
  double full_rate_share() const { return share(full_rate); }

 private:
  double share(uint64_t flows) const {
    return arrived > 0 ? static_cast<double>(flows) / static_cast<double>(arrived) : 0;
  }
};

class FlowModel {
 public:
  // Equal seeds give the same arrivals, sizes and other load whatever dispatches.
  explicit FlowModel(const FlowModelOptions& options);

  void run(Nanos until);
  FlowCounts take_counts();  // since the last call
  Nanos now() const { return ran_until_; }

  // Other load takes this share of an instance from now on, or until its next draw.
  void set_background(size_t instance, double share);

  const std::vector<SharedInstance>& instances() const { return instances_; }
  double accepted_bytes() const { return accepted_bytes_; }  // of all flows so far

 private:
  struct Balancer {
    struct Seen {
      double used = 0;
      double when = 0;
    };
    balance::DispatchTable table;
    balance::ConnectionCounts connections;
    std::vector<Seen> seen;  // by instance, at its last poll
    std::vector<double> available;
  };

  bool polls() const;
  void arrive(double now);
  void end_flow(size_t instance, double now);
  void poll(size_t balancer, double now);
  void draw_background(size_t instance, double now);
  void change_background(size_t instance, double share, double now);
  size_t choose(Balancer& balancer);
  size_t freest() const;
  size_t background_timer(size_t instance) const { return instances_.size() + instance; }
  size_t poll_timer(size_t balancer) const { return 2 * instances_.size() + balancer; }

  FlowModelOptions options_;
  Random arrivals_;
  Random background_;
  Random dispatch_;
  double gap_ = 0;  // s, mean between arrivals
  Nanos ran_until_ = 0;
  double next_arrival_ = 0;
  uint64_t flows_ = 0;
  std::vector<SharedInstance> instances_;
  std::vector<Balancer> balancers_;
  EventTimes timers_;  // the ends of flows, the draws of other load, the polls
  double accepted_bytes_ = 0;
  FlowCounts counts_;
  Nanos taken_at_ = 0;
  double taken_served_ = 0;
  double taken_offerable_ = 0;
};

}  // namespace ballast::sim
