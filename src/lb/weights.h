// SPDX-License-Identifier: Apache-2.0
// The weights of a VIP's instances from what is known of each. Pure but for what it remembers of
// the calls before, so that a steady load gives steady weights. docs/reference/lb-load.md.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "base/clock.h"
#include "lb/load_source.h"
#include "lb/steady.h"
#include "model/lb.h"

namespace ballast::lb {

struct Candidate {
  uint32_t id = 0;      // the instance's own over all calls, e.g. its index
  double weight = 1;    // static
  double capacity = 1;  // where the load source does not tell it
  model::Operation operation = model::Operation::kUp;
  bool is_healthy = true;
  bool has_next_hop = true;
  const LoadState* load = nullptr;  // null: it has no load source
  uint64_t connections = 0;         // open ones
  // Since it last came to be up, healthy and with a next hop; the maximum: long ago.
  Nanos up_for = std::numeric_limits<Nanos>::max();
};

// Why an instance has its weight, above all a weight of 0.
enum class Reason : uint8_t {
  kWeighed,      // by the scheduler
  kSlowStart,    // still growing to that
  kLastHeard,    // three polls or more were missed: the last weight
  kNotHeard,     // no load was heard yet: the mean of the others' is assumed
  kLeastShare,   // raised to its least share
  kNothingFree,  // nobody has anything free: static weights
  kFull,         // 0 from here on: less is free than the scheduler's least step
  kMaintenance,
  kUnhealthy,
  kNoNextHop,
  kDrained,       // by its operation
  kDrainedAgent,  // an agent-check said so
  kNoWeight,      // its static weight is 0, or an agent-check said 0 %
};
const char* words_of(Reason reason);  // e.g. "slow start"

struct Weighed {
  uint32_t weight = 0;     // up to DispatchTable::kMostWeight
  double utilisation = 0;  // that was reckoned with, 0 to 1
  double available = 0;    // (1 - utilisation) * capacity * static weight
  Reason reason = Reason::kWeighed;
};

// From missed polls on, an instance stays at its last weight.
inline constexpr uint32_t kMissedPolls = 3;

class Weights {
 public:
  // One for each candidate, in their order; P(instance) = its weight / sum of all. At most
  // BL_MOST_CLASSES different weights above 0. All 0 only if no candidate may get anything.
  // `vip` is one that model::check() takes, and always the same one.
  std::vector<Weighed> next(const model::Vip& vip, std::span<const Candidate> candidates);

 private:
  struct Known {
    Steady free;               // of the capacity
    uint64_t answers = 0;      // that are in `free`
    double scale = 0;          // capacity times static weight
    uint32_t queue = 0;        // accept queue in the last of them
    bool has_weight = false;   // `last_weight` is from when its load was heard
    uint32_t last_weight = 0;  // AWFD's, before slow start
    bool is_named = false;     // in this call
  };
  struct Call;

  Known& hear(const Candidate& candidate, uint32_t m);
  void reckon(Call& call);
  std::vector<uint32_t> by_awfd(Call& call);
  std::vector<uint32_t> by_connections(const Call& call) const;
  void raise(Call& call, std::vector<uint32_t>& weights) const;
  std::vector<uint32_t> whole(std::span<const double> shares);

  std::map<uint32_t, Known> known_;  // by id
  double most_available_ = 0;        // in the last call
  double free_ = 1;                  // then, of all capacity
  std::vector<double> shares_;       // of which `whole_` was made
  std::vector<uint32_t> whole_;
};

}  // namespace ballast::lb
