// SPDX-License-Identifier: Apache-2.0
#include "sim/shared_instance.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace ballast::sim {

SharedInstance::SharedInstance(double capacity, double flow_rate, size_t most_flows)
    : capacity_(capacity), most_rate_(flow_rate), most_flows_(most_flows), available_(capacity) {
  BALLAST_CHECK(capacity > 0 && flow_rate > 0 && most_flows > 0);
}

void SharedInstance::set_background(double share, double now) {
  advance(now);
  available_ = capacity_ * (1 - share);
  set_rate();
}

bool SharedInstance::offer(double size, uint32_t tag, double now) {
  if (flows_.size() >= most_flows_) return false;
  advance(now);
  flows_.push_back({virtual_ + size, {now, tag}});
  std::push_heap(flows_.begin(), flows_.end());
  set_rate();
  return true;
}

double SharedInstance::next_end() const {
  if (flows_.empty() || rate_ <= 0) return std::numeric_limits<double>::infinity();
  return now_ + std::max(0.0, flows_.front().end - virtual_) / rate_;
}

SharedInstance::Flow SharedInstance::end_next(double now) {
  advance(now);
  const Entry ended = flows_.front();
  std::pop_heap(flows_.begin(), flows_.end());
  flows_.pop_back();
  // Exact, so that rounding does not add up; from 0 again where nothing refers to it.
  virtual_ = flows_.empty() ? 0 : ended.end;
  set_rate();
  return ended.flow;
}

void SharedInstance::advance(double now) {
  const double passed = now - now_;
  const double served = rate_ * static_cast<double>(flows_.size()) * passed;
  virtual_ += rate_ * passed;
  served_ += served;
  used_ += served + (capacity_ - available_) * passed;
  offerable_ += available_ * passed;
  now_ = now;
}

double SharedInstance::unfinished() const {
  double sum = 0;
  for (const Entry& entry : flows_) sum += entry.end - virtual_;
  return sum;
}

void SharedInstance::set_rate() {
  rate_ =
      flows_.empty() ? 0 : std::min(most_rate_, available_ / static_cast<double>(flows_.size()));
}

}  // namespace ballast::sim
