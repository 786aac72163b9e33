// SPDX-License-Identifier: Apache-2.0
#include "lb/weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "balance/awfd.h"
#include "base/check.h"
#include "lb/shares.h"
#include "wire/lb.h"

namespace ballast::lb {
namespace {

using model::Scheduler;

constexpr int kSlowSteps = 16;  // so that slow start changes a table that often, not every poll
constexpr uint32_t kFinestSteps = 16;  // of what is most free, that a figure is held to
constexpr double kLeastStep = 0.02;    // of an instance's capacity: finer is noise
constexpr double kNewShare = 0.1;      // connections to be spread until the next look, of the open

// 0 if it may get something.
Reason barred(const Candidate& candidate) {
  if (candidate.operation == model::Operation::kMaintenance) return Reason::kMaintenance;
  if (!candidate.is_healthy) return Reason::kUnhealthy;
  if (!candidate.has_next_hop) return Reason::kNoNextHop;
  if (candidate.operation == model::Operation::kDrain) return Reason::kDrained;
  if (candidate.load != nullptr && candidate.load->drains) return Reason::kDrainedAgent;
  const bool is_out = candidate.load != nullptr && candidate.load->factor == 0.0;
  return candidate.weight == 0 || is_out ? Reason::kNoWeight : Reason::kWeighed;
}

double slow_start(const Candidate& candidate, uint32_t slow_start_ms) {
  const Nanos whole = Nanos{slow_start_ms} * kMillisecond;
  if (candidate.up_for >= whole) return 1;
  const double part = static_cast<double>(candidate.up_for) / static_cast<double>(whole);
  return std::clamp(std::ceil(part * kSlowSteps), 1.0, double{kSlowSteps}) / kSlowSteps;
}

// What an agent-check makes of the static weight.
double factor_of(const Candidate& candidate, double free) {
  return candidate.load != nullptr && candidate.load->factor ? free : 1;
}

double mean_or(const std::vector<double>& values, double none) {
  if (values.empty()) return none;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

bool is_frozen(const Candidate& candidate) {
  return candidate.load != nullptr && candidate.load->missed >= kMissedPolls;
}

}  // namespace

// What next() works on.
struct Weights::Call {
  const model::Vip& vip;
  std::span<const Candidate> candidates;
  std::vector<Known*> known;
  std::vector<Weighed> out;
  std::vector<double> fixed;  // static weight, with what is known of the capacity; 0: barred
  std::vector<double> free;   // share of the capacity; an agent-check may say more than 1
  std::vector<double> slow;   // slow start's factor
};

const char* words_of(Reason reason) {
  switch (reason) {
    case Reason::kWeighed:
      return "weighed";
    case Reason::kSlowStart:
      return "slow start";
    case Reason::kLastHeard:
      return "load not heard, last weight";
    case Reason::kNotHeard:
      return "load not heard yet";
    case Reason::kLeastShare:
      return "least share";
    case Reason::kNothingFree:
      return "nobody has anything free";
    case Reason::kFull:
      return "full";
    case Reason::kMaintenance:
      return "maintenance";
    case Reason::kUnhealthy:
      return "unhealthy";
    case Reason::kNoNextHop:
      return "no next hop";
    case Reason::kDrained:
      return "drained";
    case Reason::kDrainedAgent:
      return "drained by its agent-check";
    case Reason::kNoWeight:
      return "weight 0";
  }
  return "";
}

// Takes what a new answer says is free. Where little is free in all, a little more or less on one
// instance is much, so less is taken for noise.
Weights::Known& Weights::hear(const Candidate& candidate, uint32_t m) {
  Known& known = known_[candidate.id];
  const double steps = known.scale * std::max(m, kFinestSteps);
  const double step = std::clamp(steps > 0 ? most_available_ / steps : 0, kLeastStep, 1.0);
  const LoadState* load = candidate.load;
  // Fewer answers than before: the target is another one.
  if (load == nullptr || load->answers < known.answers) known = Known();
  known.is_named = true;
  if (load == nullptr || load->answers == known.answers) return known;
  known.answers = load->answers;
  const uint32_t queue = load->accept_queue.value_or(0);
  const double standing = std::min(queue, known.queue);
  known.queue = queue;
  if (load->factor) {
    known.free.take(*load->factor, step, free_);
  } else if (load->utilisation) {
    // With q waiting for each core a newcomer gets 1 / (1 + q) of one, idle as they may look.
    const double cores = load->cores.value_or(candidate.capacity);
    known.free.take(std::min(1 - *load->utilisation, cores / (cores + standing)), step, free_);
  } else {
    known.free = {};  // it does not know
  }
  return known;
}

// Fills in what is free and available, and the shares that static weights give.
void Weights::reckon(Call& call) {
  const bool has_capacity = call.vip.scheduler == Scheduler::kAwfd;
  std::vector<double> frees;
  std::vector<double> cores;
  for (size_t i = 0; i < call.candidates.size(); ++i) {
    const Candidate& candidate = call.candidates[i];
    if (const Known& known = *call.known[i]; !known.free.is_empty())
      frees.push_back(known.free.held());
    if (candidate.load != nullptr && candidate.load->cores) cores.push_back(*candidate.load->cores);
  }
  const double mean_free = mean_or(frees, 1);
  double all = 0;
  double free_of_all = 0;
  for (size_t i = 0; i < call.candidates.size(); ++i) {
    const Candidate& candidate = call.candidates[i];
    Known& known = *call.known[i];
    Weighed& out = call.out[i];
    out.reason = barred(candidate);
    call.slow[i] = slow_start(candidate, call.vip.slow_start_ms);
    if (out.reason != Reason::kWeighed) continue;
    double capacity = candidate.capacity;
    if (candidate.load != nullptr && call.vip.load == model::LoadSource::kAgent)
      capacity = candidate.load->cores.value_or(mean_or(cores, capacity));
    double& free = call.free[i];
    if (candidate.load != nullptr)
      free = std::max(0.0, known.free.is_empty() ? mean_free : known.free.held());
    out.utilisation = std::max(0.0, 1 - free);
    if (candidate.load != nullptr && known.free.is_empty()) out.reason = Reason::kNotHeard;
    if (call.slow[i] < 1) out.reason = Reason::kSlowStart;
    known.scale = capacity * candidate.weight;
    out.available = free * capacity * candidate.weight;
    all += capacity;
    free_of_all += free * capacity;
    call.fixed[i] = candidate.weight * (has_capacity ? capacity : 1);
  }
  free_ = all > 0 ? free_of_all / all : 1;
}

// Those that are heard, by what they have free; the others at their last weight.
std::vector<uint32_t> Weights::by_awfd(Call& call) {
  const uint32_t m = call.vip.m;
  std::vector<double> available(call.candidates.size(), 0);
  std::vector<bool> is_last(call.candidates.size(), false);
  for (size_t i = 0; i < available.size(); ++i) {
    is_last[i] = is_frozen(call.candidates[i]) && call.known[i]->has_weight;
    if (!is_last[i]) available[i] = call.out[i].available * call.slow[i];
  }
  const double most = *std::ranges::max_element(available);
  if (most > 0) most_available_ = most;
  std::vector<uint32_t> weights(available.size(), 0);
  if (most > 0) weights = balance::awfd_weights(available, m).value_or(std::move(weights));
  for (size_t i = 0; i < weights.size(); ++i) {
    Known& known = *call.known[i];
    if (call.fixed[i] == 0) {
      weights[i] = 0;
    } else if (is_last[i]) {
      weights[i] = static_cast<uint32_t>(std::ceil(known.last_weight * call.slow[i]));
      call.out[i].reason = Reason::kLastHeard;
    } else if (!known.free.is_empty() && most > 0) {
      const double full = std::floor(m * std::min(1.0, call.out[i].available / most));
      known.last_weight = call.slow[i] < 1 ? static_cast<uint32_t>(full) : weights[i];
      known.has_weight = true;
    }
  }
  return weights;
}

std::vector<uint32_t> Weights::by_connections(const Call& call) const {
  std::vector<uint64_t> open;
  std::vector<double> fair;
  double all = 0;
  for (size_t i = 0; i < call.candidates.size(); ++i) {
    open.push_back(call.candidates[i].connections);
    fair.push_back(call.fixed[i] * call.slow[i] * factor_of(call.candidates[i], call.free[i]));
    if (fair.back() > 0) all += static_cast<double>(open.back());
  }
  std::vector<uint32_t> weights(fair.size(), 0);
  if (*std::ranges::max_element(fair) == 0) return weights;
  const double more = static_cast<double>(fair.size()) + kNewShare * all;
  return balance::awfd_weights(least_first(open, fair, more), BL_MOST_CLASSES)
      .value_or(std::move(weights));
}

std::vector<uint32_t> Weights::whole(std::span<const double> shares) {
  if (!std::ranges::equal(shares, shares_)) {
    shares_.assign(shares.begin(), shares.end());
    whole_ = whole_weights(shares);
  }
  return whole_;
}

// Makes good for an instance that would get less than its least share.
void Weights::raise(Call& call, std::vector<uint32_t>& weights) const {
  std::vector<double> fair(call.fixed);
  for (size_t i = 0; i < fair.size(); ++i) fair[i] *= call.slow[i];
  const auto shares = with_least_share(weights, fair, call.vip.least_share);
  if (shares.empty()) return;
  const auto raised = whole_weights(shares);
  const auto sum =
      static_cast<double>(std::accumulate(weights.begin(), weights.end(), uint64_t{0}));
  for (size_t i = 0; i < weights.size(); ++i)
    if (shares[i] > weights[i] / sum) call.out[i].reason = Reason::kLeastShare;
  weights = raised;
}

std::vector<Weighed> Weights::next(const model::Vip& vip, std::span<const Candidate> candidates) {
  const size_t count = candidates.size();
  if (count == 0) return {};
  Call call{.vip = vip,
            .candidates = candidates,
            .known = {},
            .out = std::vector<Weighed>(count),
            .fixed = std::vector<double>(count, 0),
            .free = std::vector<double>(count, 1),
            .slow = std::vector<double>(count, 1)};
  for (auto& [id, known] : known_) known.is_named = false;
  for (const Candidate& candidate : candidates) call.known.push_back(&hear(candidate, vip.m));
  std::erase_if(known_, [](const auto& entry) { return !entry.second.is_named; });
  reckon(call);

  const bool is_awfd = vip.scheduler == Scheduler::kAwfd;
  const bool is_equal = vip.scheduler == Scheduler::kEcmp || (is_awfd && vip.m == 0);
  std::vector<double> shares(count);
  for (size_t i = 0; i < count; ++i) {
    double share = is_equal ? (call.fixed[i] > 0 ? 1 : 0) : call.fixed[i];
    if (vip.scheduler == Scheduler::kStatic) share *= factor_of(candidates[i], call.free[i]);
    shares[i] = share * call.slow[i];
  }
  std::vector<uint32_t> weights(count, 0);
  if (is_awfd && vip.m > 0 && vip.load != model::LoadSource::kNone) {
    weights = by_awfd(call);
  } else if (vip.scheduler == Scheduler::kLeastConnections) {
    weights = by_connections(call);
  } else {
    weights = whole(shares);
  }
  if (std::ranges::all_of(weights, [](uint32_t weight) { return weight == 0; })) {
    weights = whole(shares);
    for (size_t i = 0; i < count; ++i)
      if (weights[i] > 0) call.out[i].reason = Reason::kNothingFree;
  } else if (vip.least_share > 0) {
    raise(call, weights);
  }
  for (size_t i = 0; i < count; ++i) {
    call.out[i].weight = weights[i];
    if (weights[i] == 0 && call.out[i].reason < Reason::kFull) call.out[i].reason = Reason::kFull;
  }
  return std::move(call.out);
}

}  // namespace ballast::lb
