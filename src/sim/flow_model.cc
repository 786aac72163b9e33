// SPDX-License-Identifier: Apache-2.0
#include "sim/flow_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "balance/awfd.h"
#include "balance/hash.h"
#include "base/check.h"

namespace ballast::sim {
namespace {

// Fine enough that WCMP and the connection counts err in the capacities by under a thousandth.
constexpr uint32_t kStaticSteps = 10'000;

double seconds(Nanos time) { return static_cast<double>(time) / static_cast<double>(kSecond); }

std::vector<uint32_t> weights_of(const std::vector<double>& available, uint32_t m) {
  auto weights = balance::awfd_weights(available, m);
  BALLAST_CHECK(weights);
  return std::move(*weights);
}

std::vector<uint32_t> static_weights(const std::vector<double>& capacities) {
  std::vector<uint32_t> weights = weights_of(capacities, kStaticSteps);
  for (uint32_t& weight : weights) weight = std::max(weight, 1U);
  return weights;
}

// Before the first poll.
std::vector<uint32_t> first_weights(const FlowModelOptions& options) {
  switch (options.dispatching) {
    case Dispatching::kAwfd:
      return weights_of(options.capacities, options.m);
    case Dispatching::kLeastCongested:
      return weights_of(options.capacities, 1);
    case Dispatching::kWcmp:
      return static_weights(options.capacities);
    default:
      return std::vector<uint32_t>(options.capacities.size(), 1);
  }
}

double exponential(Random& random) { return -std::log(1 - random.unit()); }

}  // namespace

std::string_view dispatching_name(Dispatching dispatching) {
  switch (dispatching) {
    case Dispatching::kEcmp:
      return "ECMP";
    case Dispatching::kWcmp:
      return "WCMP";
    case Dispatching::kLeastConnections:
      return "least connections";
    case Dispatching::kTwoChoices:
      return "two choices";
    case Dispatching::kLeastCongested:
      return "least congested";
    case Dispatching::kAwfd:
      return "AWFD";
    case Dispatching::kIdeal:
      return "ideal";
  }
  return "";
}

FlowModel::FlowModel(const FlowModelOptions& options)
    : options_(options),
      arrivals_(balance::mix(options.seed, 1)),
      background_(balance::mix(options.seed, 2)),
      dispatch_(balance::mix(options.seed, 3)),
      timers_(2 * options.capacities.size() + options.balancers) {
  BALLAST_CHECK(!options.capacities.empty() && options.flow_rate > 0 && options.load > 0 &&
                options.sizes && options.balancers > 0 && options.interval > 0 &&
                options.background.most < 1);
  double free = 0;
  for (const double capacity : options.capacities) {
    const double at_full_rate = std::max(1.0, capacity / options.flow_rate);
    const auto most = static_cast<size_t>(std::min(options.accepted * at_full_rate, 1e15));
    instances_.emplace_back(capacity, options.flow_rate, std::max<size_t>(1, most));
    free += capacity * (1 - options.background.mean());
  }
  gap_ = options.sizes->mean() / (options.load * free);
  next_arrival_ = gap_ * exponential(arrivals_);
  for (size_t i = 0; i < instances_.size(); ++i) draw_background(i, 0);
  const balance::DispatchTable table(first_weights(options));
  const balance::ConnectionCounts connections(static_weights(options.capacities));
  for (size_t i = 0; i < options.balancers; ++i) {
    balancers_.push_back(
        {table, connections, std::vector<Balancer::Seen>(instances_.size()), options.capacities});
    if (polls()) timers_.set(poll_timer(i), seconds(options.interval) * dispatch_.unit());
  }
}

void FlowModel::run(Nanos until) {
  const double end = seconds(until);
  for (;;) {
    const double timer = timers_.time();
    if (std::min(timer, next_arrival_) >= end) break;
    if (next_arrival_ < timer) {
      arrive(next_arrival_);
      continue;
    }
    const size_t first = timers_.first();
    if (first < instances_.size()) {
      end_flow(first, timer);
    } else if (first < poll_timer(0)) {
      draw_background(first - instances_.size(), timer);
    } else {
      poll(first - poll_timer(0), timer);
    }
  }
  ran_until_ = until;
  for (SharedInstance& instance : instances_) instance.advance(end);
}

FlowCounts FlowModel::take_counts() {
  FlowCounts counts = std::move(counts_);
  counts_ = {};
  double served = 0;
  double offerable = 0;
  for (const SharedInstance& instance : instances_) {
    served += instance.served();
    offerable += instance.offerable();
  }
  counts.served = served - taken_served_;
  counts.offerable = offerable - taken_offerable_;
  counts.seconds = seconds(ran_until_ - taken_at_);
  taken_served_ = served;
  taken_offerable_ = offerable;
  taken_at_ = ran_until_;
  return counts;
}

void FlowModel::set_background(size_t instance, double share) {
  change_background(instance, share, seconds(ran_until_));
}

bool FlowModel::polls() const {
  return options_.dispatching == Dispatching::kAwfd ||
         options_.dispatching == Dispatching::kLeastCongested;
}

void FlowModel::arrive(double now) {
  const double size = options_.sizes->sample(arrivals_);
  next_arrival_ = now + gap_ * exponential(arrivals_);
  ++counts_.arrived;
  counts_.offered += size;
  const auto balancer = static_cast<uint32_t>(dispatch_.below(balancers_.size()));
  const size_t chosen = choose(balancers_[balancer]);
  if (!instances_[chosen].offer(size, balancer, now)) {
    ++counts_.refused;
    return;
  }
  accepted_bytes_ += size;
  if (instances_[chosen].flow_rate() >= options_.flow_rate) ++counts_.full_rate;
  balancers_[balancer].connections.opened(static_cast<uint16_t>(chosen));
  timers_.set(chosen, instances_[chosen].next_end());
}

void FlowModel::end_flow(size_t instance, double now) {
  const SharedInstance::Flow flow = instances_[instance].end_next(now);
  ++counts_.ended;
  counts_.completion.record(
      static_cast<int64_t>((now - flow.arrived) * static_cast<double>(kSecond)));
  balancers_[flow.tag].connections.closed(static_cast<uint16_t>(instance));
  timers_.set(instance, instances_[instance].next_end());
}

void FlowModel::poll(size_t index, double now) {
  Balancer& balancer = balancers_[index];
  timers_.set(poll_timer(index), now + seconds(options_.interval));
  for (size_t i = 0; i < instances_.size(); ++i) {
    if (options_.missed > 0 && dispatch_.unit() < options_.missed) continue;
    SharedInstance& instance = instances_[i];
    instance.advance(now);
    Balancer::Seen& seen = balancer.seen[i];
    if (now <= seen.when) continue;
    const double utilisation =
        (instance.used() - seen.used) / (instance.capacity() * (now - seen.when));
    seen = {instance.used(), now};
    const auto available = balance::available_capacity(utilisation, instance.capacity());
    BALLAST_CHECK(available);
    balancer.available[i] = *available;
  }
  const uint32_t m = options_.dispatching == Dispatching::kAwfd ? options_.m : 1;
  balancer.table = balance::DispatchTable(weights_of(balancer.available, m));
}

void FlowModel::change_background(size_t instance, double share, double now) {
  instances_[instance].set_background(share, now);
  timers_.set(instance, instances_[instance].next_end());
}

void FlowModel::draw_background(size_t instance, double now) {
  const Background& law = options_.background;
  const double draw = background_.unit();
  change_background(instance, law.two_valued ? (draw < 0.5 ? 0 : law.most) : draw * law.most, now);
  const double next = law.period > 0 && law.most > 0
                          ? now + seconds(law.period) * exponential(background_)
                          : std::numeric_limits<double>::infinity();
  timers_.set(background_timer(instance), next);
}

size_t FlowModel::choose(Balancer& balancer) {
  const balance::FlowHash hash = balance::flow_hash(flows_++, options_.seed);
  switch (options_.dispatching) {
    case Dispatching::kLeastConnections:
      return balancer.connections.least(dispatch_);
    case Dispatching::kTwoChoices:
      return balancer.connections.of_two(hash);
    case Dispatching::kIdeal:
      return freest();
    default:
      return balancer.table.choose(hash);
  }
}

size_t FlowModel::freest() const {
  size_t best = 0;
  double most = -1;
  for (size_t i = 0; i < instances_.size(); ++i) {
    const double rate = instances_[i].available() / static_cast<double>(instances_[i].flows() + 1);
    if (rate <= most) continue;
    most = rate;
    best = i;
  }
  return best;
}

}  // namespace ballast::sim
