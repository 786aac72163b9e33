// SPDX-License-Identifier: Apache-2.0
// Whose turn it is: many things that each have one every interval of their own, spread over it
// however many come and go. Pure.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace ballast::lb {

class Turns {
 public:
  struct Turn {
    uint32_t id;
    Nanos due;
  };

  // Has its first turn at once if `now_too`, and those after it at its own place in the interval:
  // of any n that came one after another the places are evenly apart, but for a factor of 2.6.
  void add(uint32_t id, Nanos interval, Nanos now, bool now_too = false);
  void remove(uint32_t id);
  // Its next turn is now, in place of the one it would have.
  void hurry(uint32_t id, Nanos now);

  // The earliest that is due by now; its next turn is set. Turns that went by without a call are
  // not made up for: they would come all at once.
  std::optional<Turn> take(Nanos now);
  std::optional<Nanos> next_due();

 private:
  struct Place {
    Nanos interval;
    Nanos phase;  // turns are at times that leave this remainder
    Nanos due;
  };
  static Nanos at_phase(const Place& place, Nanos not_before);
  void push(uint32_t id, Nanos due);
  void pop();
  void drop_stale();

  boost::unordered_flat_map<uint32_t, Place> places_;  // by id
  // A heap, the earliest first. One whose `due` is not that of its place is stale.
  std::vector<Turn> heap_;
  uint64_t added_ = 0;
};

}  // namespace ballast::lb
