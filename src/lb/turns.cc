// SPDX-License-Identifier: Apache-2.0
#include "lb/turns.h"

#include "base/check.h"

namespace ballast::lb {

// The first time from `not_before` on that is at the place.
Nanos Turns::at_phase(const Place& place, Nanos not_before) {
  const Nanos into = (not_before - place.phase) % place.interval;
  const Nanos left = into < 0 ? -into : place.interval - into;
  return into == 0 ? not_before : not_before + left;
}

void Turns::add(uint32_t id, Nanos interval, Nanos now, bool now_too) {
  BALLAST_CHECK(interval > 0 && !places_.contains(id));
  // Multiples of the golden ratio, of which each falls into one of the largest gaps so far.
  const uint64_t part = added_++ * 0x9e3779b97f4a7c15ULL;
  const auto phase = static_cast<Nanos>(
      static_cast<unsigned __int128>(part) * static_cast<uint64_t>(interval) >> 64);
  Place place{interval, phase, now};
  if (!now_too) place.due = at_phase(place, now);
  places_[id] = place;
  due_.emplace(place.due, id);
}

void Turns::remove(uint32_t id) {
  const auto found = places_.find(id);
  if (found == places_.end()) return;
  due_.erase({found->second.due, id});
  places_.erase(found);
}

void Turns::hurry(uint32_t id, Nanos now) {
  Place& place = places_.at(id);
  due_.erase({place.due, id});
  place.due = now;
  due_.emplace(place.due, id);
}

std::optional<Turns::Turn> Turns::take(Nanos now) {
  if (due_.empty() || due_.begin()->first > now) return std::nullopt;
  const auto [due, id] = *due_.begin();
  due_.erase(due_.begin());
  Place& place = places_.at(id);
  // Half an interval at least after a turn that was out of its place.
  place.due = at_phase(place, due + place.interval / 2 + 1);
  if (place.due <= now) place.due = at_phase(place, now + 1);
  due_.emplace(place.due, id);
  return Turn{id, due};
}

std::optional<Nanos> Turns::next_due() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

}  // namespace ballast::lb
