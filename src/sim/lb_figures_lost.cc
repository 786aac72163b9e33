// SPDX-License-Identifier: Apache-2.0
// One of two balancers is lost: how many of its open connections the other one, which has no entry
// for them, sends to their instance. docs/design/lb-lost-balancer.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "balance/awfd.h"
#include "balance/dispatch_table.h"
#include "balance/hash.h"
#include "balance/ring.h"
#include "base/random.h"
#include "sim/lb_figures.h"

namespace ballast::sim {
namespace {

constexpr size_t kPolls = 600;  // of which each opens its part of the connections
constexpr size_t kPerPoll = 100;
constexpr double kLoad = 0.7;
constexpr double kSway = 0.2;  // of the load of an instance, from one poll to the next

enum Line : size_t { kNoRing, kRing, kSecond, kCoupledAgain, kBound, kLines };

// What each instance has free, changing from poll to poll.
class Free {
 public:
  Free(const LbFigureOptions& options, double most, uint64_t seed)
      : capacities_(capacities_of(options)),
        other_(capacities_.size()),
        most_(most),
        load_(options.load.value_or(kLoad)),
        random_(seed) {
    const Background& background = options.model.background;
    redrawn_ = background.period > 0 ? static_cast<double>(options.model.interval) /
                                           static_cast<double>(background.period)
                                     : 0;
    for (double& other : other_) other = random_.unit() * most_;
  }

  std::vector<double> next() {
    std::vector<double> available;
    for (size_t i = 0; i < other_.size(); ++i) {
      if (random_.unit() < redrawn_) other_[i] = random_.unit() * most_;
      const double own = load_ * (1 + kSway * (2 * random_.unit() - 1));
      available.push_back((1 - other_[i]) * std::max(0.0, 1 - own) * capacities_[i]);
    }
    return available;
  }

  // By capacity alone, as the ring is.
  std::vector<balance::RingMember> members() const {
    std::vector<balance::RingMember> members;
    for (size_t i = 0; i < capacities_.size(); ++i)
      members.push_back({balance::mix(i, 11), static_cast<uint32_t>(std::lround(
                                                  1024 * capacities_[i] / capacities_[0]))});
    return members;
  }

 private:
  std::vector<double> capacities_;
  std::vector<double> other_;
  double most_;
  double load_;
  double redrawn_ = 0;
  Random random_;
};

// The tables of one poll.
struct Tables {
  Tables(std::span<const uint32_t> weights, const balance::Ring& ring)
      : dispatch(weights), coupled(balance::couple(weights, ring.owned())) {}

  uint32_t choose(uint16_t first, balance::FlowHash hash) const {
    return bl_couple(coupled.data(), static_cast<uint32_t>(coupled.size()), first, hash);
  }

  balance::DispatchTable dispatch;
  std::vector<bl_coupled> coupled;
};

std::array<double, kLines> kept(const LbFigureOptions& options, double most, uint64_t seed) {
  Free free(options, most, seed);
  const auto members = free.members();
  const balance::Ring ring(members, 1, balance::Ring::size_for(members.size()));
  const std::vector<uint32_t> owned = ring.owned();
  std::vector<Tables> then;
  std::array<double, kLines> kept{};
  for (size_t poll = 0; poll <= kPolls; ++poll) {
    const auto weights = balance::awfd_weights(free.next(), options.model.m);
    then.emplace_back(*weights, ring);
    if (poll < kPolls)
      kept[kBound] += (1 - balance::total_variation(*weights, owned)) / double{kPolls};
  }
  const Tables& now = then.back();
  const auto size = static_cast<uint32_t>(ring.slots().size());
  for (size_t flow = 0; flow < kPolls * kPerPoll; ++flow) {
    const Tables& opened = then[flow / kPerPoll];
    const balance::FlowHash hash = balance::flow_hash(flow, seed);
    const bl_ring_slot slot = ring.slots()[bl_ring_slot_of(hash, size)];
    const uint32_t instance = opened.choose(slot.first, hash);
    const uint32_t again = now.choose(slot.first, hash);
    const uint32_t candidate = again != slot.first ? again : slot.second;
    kept[kNoRing] += opened.dispatch.choose(hash) == now.dispatch.choose(hash);
    kept[kRing] += instance == slot.first;
    kept[kSecond] += instance == slot.first || instance == candidate;
    kept[kCoupledAgain] += instance == again;
  }
  for (const Line line : {kNoRing, kRing, kSecond, kCoupledAgain})
    kept[line] /= double{kPolls * kPerPoll};
  for (double& share : kept) share *= 100;
  return kept;
}

}  // namespace

Figure lost_balancer_figure(const LbFigureOptions& options) {
  static constexpr double kMost[] = {0, 0.1, 0.25, 0.5, 0.75, 0.9};
  Figure figure{.name = "lost-balancer",
                .title = "Connections that outlive one of two balancers",
                .x_title = "other load at most",
                .y_title = "connections kept, %"};
  for (const double most : kMost) figure.x.push_back(fmt::format("{:g}", most));
  for (const char* name : {"AWFD, no ring", "ring", "ring and second chance", "coupled choice anew",
                           "1 - total variation"})
    figure.series.push_back({name});
  fill_cells(figure, options.runs, [&](size_t series, size_t x, size_t run) {
    return kept(options, kMost[x], model_seed(options, run))[series];
  });
  figure.notes.push_back(fmt::format(
      "Connections were opened evenly over {} polls, {} ms apart, and none has ended; the load of "
      "an instance is {:g} of what other load leaves, and sways by {:g} of that from poll to poll.",
      kPolls, options.model.interval / kMillisecond, options.load.value_or(kLoad), kSway));
  figure.notes.emplace_back(
      "Ring: packets without an entry go by the ring alone. Second chance: the instance hands on "
      "what is not its own, once. Coupled choice anew: they go by the survivor's weights of now.");
  return figure;
}

}  // namespace ballast::sim
