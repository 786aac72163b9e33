// SPDX-License-Identifier: Apache-2.0
// The earliest of a fixed number of timers, each of which may be moved: a tournament over them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ballast::sim {

class EventTimes {
 public:
  // `count` timers, at least one, none set.
  explicit EventTimes(size_t count)
      : leaves_(std::bit_ceil(count)),
        times_(leaves_, std::numeric_limits<double>::infinity()),
        winners_(2 * leaves_) {
    for (size_t i = 0; i < leaves_; ++i) winners_[leaves_ + i] = static_cast<uint32_t>(i);
    for (size_t node = leaves_ - 1; node > 0; --node) winners_[node] = winners_[2 * node];
  }

  // O(log count); infinite: not set.
  void set(size_t timer, double time) {
    times_[timer] = time;
    for (size_t node = (leaves_ + timer) / 2; node > 0; node /= 2) {
      const uint32_t left = winners_[2 * node];
      const uint32_t right = winners_[2 * node + 1];
      winners_[node] = times_[right] < times_[left] ? right : left;
    }
  }

  size_t first() const { return winners_[1]; }  // of equal times the lowest number
  double time() const { return times_[first()]; }

 private:
  size_t leaves_;
  std::vector<double> times_;
  std::vector<uint32_t> winners_;  // a heap-ordered tree; the leaves are the timers themselves
};

}  // namespace ballast::sim
