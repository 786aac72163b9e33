// SPDX-License-Identifier: Apache-2.0
#include "lb/steady.h"

#include <algorithm>
#include <cmath>

namespace ballast::lb {
namespace {

// Tried on processor times of queues at 30 to 70 % with jobs of 0.5 to 10 ms, read every 100 ms
// over 200 ms, in 550 polls: four instances had mostly 0 or 1 changes of weights, 14 at most.
constexpr double kSlackPerNoise = 1;
constexpr double kThresholdPerNoise = 10;
constexpr double kNoiseRate = 1.0 / 32;
constexpr double kMostSurprise = 3;  // times the noise: a true move is not taken for noise
constexpr double kSlackPerStep = 0.25;
constexpr double kThresholdPerStep = 0.5;

}  // namespace

// True: what is held moves to the mean of the figures that were added.
bool Steady::Side::add(double figure, double excess, double threshold) {
  sum = std::max(0.0, sum + excess);
  if (sum == 0) {
    *this = {};
    return false;
  }
  total += figure;
  ++count;
  return sum >= threshold;
}

double Steady::take(double figure, double step, double most) {
  const double slack_least = kSlackPerStep * step;
  if (!has_any_) {
    has_any_ = true;
    held_ = figure;
    return held_;
  }
  const double off = std::abs(figure - held_);
  const double surprise = kMostSurprise * std::max(noise_, slack_least);
  noise_ += kNoiseRate * (std::min(off, surprise) - noise_);
  const double slack = std::max(slack_least, std::min(kSlackPerNoise * noise_, most / 4));
  const double threshold =
      std::max(kThresholdPerStep * step, std::min(kThresholdPerNoise * noise_, most * 3 / 4));
  for (Side* side : {&above_, &below_}) {
    const double distance = side == &above_ ? figure - held_ : held_ - figure;
    if (!side->add(figure, distance - slack, threshold)) continue;
    held_ = side->total / side->count;
    above_ = {};
    below_ = {};
    break;
  }
  return held_;
}

}  // namespace ballast::lb
