// SPDX-License-Identifier: Apache-2.0
#include "lb/turns.h"

#include <algorithm>

#include "base/check.h"

namespace ballast::lb {
namespace {

bool is_later(const Turns::Turn& a, const Turns::Turn& b) { return a.due > b.due; }

}  // namespace

void Turns::push(uint32_t id, Nanos due) {
  heap_.push_back({id, due});
  std::ranges::push_heap(heap_, is_later);
}

void Turns::pop() {
  std::ranges::pop_heap(heap_, is_later);
  heap_.pop_back();
}

void Turns::drop_stale() {
  while (!heap_.empty()) {
    const auto found = places_.find(heap_.front().id);
    if (found != places_.end() && found->second.due == heap_.front().due) return;
    pop();
  }
}

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
  push(id, place.due);
}

void Turns::remove(uint32_t id) { places_.erase(id); }

void Turns::hurry(uint32_t id, Nanos now) {
  places_.at(id).due = now;
  push(id, now);
}

std::optional<Turns::Turn> Turns::take(Nanos now) {
  drop_stale();
  if (heap_.empty() || heap_.front().due > now) return std::nullopt;
  const Turn turn = heap_.front();
  pop();
  Place& place = places_.at(turn.id);
  // Half an interval at least after a turn that was out of its place.
  place.due = at_phase(place, turn.due + place.interval / 2 + 1);
  if (place.due <= now) place.due = at_phase(place, now + 1);
  push(turn.id, place.due);
  return turn;
}

std::optional<Nanos> Turns::next_due() {
  drop_stale();
  if (heap_.empty()) return std::nullopt;
  return heap_.front().due;
}

}  // namespace ballast::lb
