// SPDX-License-Identifier: Apache-2.0
#include "balance/choice.h"

#include <algorithm>

#include "base/check.h"

namespace ballast::balance {
namespace {

// 2^-x for x >= 0, straight between whole numbers: exact there, at most 6.2 % above elsewhere. Far
// cheaper than exp2, and an estimate needs no more.
double half_power(double x) {
  if (x >= 63) return 0;
  const auto whole = static_cast<uint64_t>(x);
  const double fraction = x - static_cast<double>(whole);
  return (1 - fraction / 2) / static_cast<double>(uint64_t{1} << whole);
}

}  // namespace

LoadTable::LoadTable(size_t nodes, ChoiceOptions options)
    : options_(options),
      per_half_life_(1.0 / static_cast<double>(options.half_life)),
      nodes_(nodes) {
  BALLAST_CHECK(options.half_life > 0);
}

void LoadTable::report(uint16_t node, uint32_t load, Nanos now, uint32_t in_flight) {
  nodes_[node] = Node{load, in_flight, now};
}

double LoadTable::estimate(uint16_t node, Nanos now) const {
  const Node& n = nodes_[node];
  double load = n.load;
  if (options_.ageing && n.load != 0) {
    load *= half_power(static_cast<double>(std::max<Nanos>(0, now - n.when)) * per_half_life_);
  }
  return options_.own_sent ? load + n.sent : load;
}

size_t LoadTable::choose(std::span<const uint16_t> candidates, Nanos now, Random& random) const {
  size_t best = 0;
  double least = estimate(candidates[0], now);
  uint64_t equal = 1;
  for (size_t i = 1; i < candidates.size(); ++i) {
    const double load = estimate(candidates[i], now);
    if (load > least) continue;
    equal = load < least ? 1 : equal + 1;
    // The i-th of equals replaces the one kept with probability 1/i: uniform among all of them.
    if (equal == 1 || random.below(equal) == 0) best = i;
    least = load;
  }
  return best;
}

LoadWindow::LoadWindow(Nanos window) : sub_window_(window / static_cast<Nanos>(kSubWindows)) {
  BALLAST_CHECK(sub_window_ > 0);
}

void LoadWindow::advance(Nanos now) {
  const Nanos passed = (now - head_start_) / sub_window_;
  if (passed <= 0) return;
  const auto steps = std::min<Nanos>(passed, static_cast<Nanos>(counts_.size()));
  for (Nanos i = 0; i < steps; ++i) {
    head_ = (head_ + 1) % counts_.size();
    total_ -= counts_[head_];
    counts_[head_] = 0;
  }
  head_start_ += passed * sub_window_;
}

uint32_t LoadWindow::load(Nanos now) const {
  LoadWindow at = *this;
  at.advance(now);
  // The running tenth has lasted this share of itself; the oldest has left the window by as much.
  const double share = std::clamp(
      static_cast<double>(now - at.head_start_) / static_cast<double>(sub_window_), 0.0, 1.0);
  const uint32_t oldest = at.counts_[(at.head_ + 1) % at.counts_.size()];
  const double load = static_cast<double>(at.total_) - share * oldest;
  return static_cast<uint32_t>(std::min(load + 0.5, 4294967295.0));
}

}  // namespace ballast::balance
