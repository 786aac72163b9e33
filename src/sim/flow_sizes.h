// SPDX-License-Identifier: Apache-2.0
// The sizes of flows: laws from even to heavy-tailed, brought to a given mean, or measured ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"

namespace ballast::sim {

class FlowSizes {
 public:
  // A point of a cumulative distribution: this share of the flows is at most this large.
  struct Point {
    double size = 0;
    double share = 0;
  };

  // One of laws(), of this mean in bytes (> 0); null-like failure if there is no such law.
  static Result<FlowSizes> of_law(std::string_view law, double mean);
  // Measured: one line a flow with its size in bytes, or lines "SIZE SHARE" that rise to share 1,
  // straight between; sizes above 0. Empty lines and those that begin with # are passed over.
  static Result<FlowSizes> parse(std::string_view text);

  double sample(Random& random) const;
  double mean() const { return mean_; }
  // No flow is larger, or under one in a thousand where the law has no end.
  double largest() const;
  const std::string& name() const { return name_; }
  // The same shape, every size times one factor.
  FlowSizes with_mean(double mean) const;

  // fixed, exponential, lognormal (sigma 1.5), pareto (shape 1.2, the largest 1,000 times the
  // least), web-search and data-mining (the curves published with DCTCP and VL2).
  static std::span<const std::string_view> laws();

 private:
  enum class Kind { kFixed, kExponential, kLognormal, kPareto, kList, kCurve };
  FlowSizes(Kind kind, std::string name) : kind_(kind), name_(std::move(name)) {}
  static FlowSizes of_curve(std::vector<Point> curve, std::string name);

  // Of scale 1.
  double draw(Random& random) const;

  Kind kind_;
  std::string name_;
  double mean_ = 1;
  double scale_ = 1;
  std::vector<Point> curve_;  // or, of kList, the sizes alone
};

}  // namespace ballast::sim
