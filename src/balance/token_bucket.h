// SPDX-License-Identifier: Apache-2.0
// A rate limit with a burst: how a test, a simulated node or a demo shard is given a capacity.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/clock.h"

namespace ballast::balance {

class TokenBucket {
 public:
  // `rate` in tokens a second, 0 = unlimited; `burst` >= 1 tokens, with which it begins full.
  explicit TokenBucket(double rate = 0, double burst = 1)
      : rate_(rate), burst_(std::max(burst, 1.0)), tokens_(burst_) {}

  // More than the burst at once is never granted.
  bool try_take(Nanos now, double n = 1) {
    if (rate_ <= 0) return true;
    refill(now);
    if (tokens_ + kSlack < n) return false;
    tokens_ -= n;
    return true;
  }

  // The earliest time at which try_take(_, n) succeeds if nobody else takes.
  Nanos next(Nanos now, double n = 1) {
    if (rate_ <= 0) return now;
    refill(now);
    if (tokens_ + kSlack >= n) return now;
    if (n > burst_) return std::numeric_limits<Nanos>::max();
    return now + static_cast<Nanos>(std::ceil((n - tokens_) / rate_ * 1e9));
  }

 private:
  // Above the rounding of a double's sum, below anything that could be told from it.
  static constexpr double kSlack = 1e-9;

  void refill(Nanos now) {
    if (now <= last_) return;
    const double gained = static_cast<double>(now - last_) * 1e-9 * rate_;
    tokens_ = std::min(burst_, tokens_ + gained);
    last_ = now;
  }

  double rate_;
  double burst_;
  double tokens_;
  Nanos last_ = 0;
};

}  // namespace ballast::balance
