// SPDX-License-Identifier: Apache-2.0
#include "lb/shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "balance/dispatch_table.h"
#include "base/check.h"
#include "wire/lb.h"

namespace ballast::lb {
namespace {

constexpr uint32_t kMostGrade = balance::DispatchTable::kMostWeight;
constexpr uint32_t kMostNeat = 1000;  // above it nobody reads a proportion off the weights
constexpr double kNeat = 1e-9;

// The different ones above 0, ascending.
std::vector<double> different(std::span<const double> shares) {
  std::vector<double> values(shares.begin(), shares.end());
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (!values.empty() && values.front() == 0) values.erase(values.begin());
  return values;
}

// The least number to stand for the largest share so that all are whole.
std::optional<uint32_t> neat_grade(std::span<const double> values) {
  for (uint32_t grade = 1; grade <= kMostNeat; ++grade) {
    const bool is_whole = std::ranges::all_of(values, [&](double value) {
      const double exact = value / values.back() * grade;
      return std::abs(exact - std::round(exact)) <= kNeat * exact && exact > 0.5;
    });
    if (is_whole) return grade;
  }
  return std::nullopt;
}

}  // namespace

std::vector<uint32_t> whole_weights(std::span<const double> shares) {
  std::vector<uint32_t> weights(shares.size(), 0);
  const std::vector<double> values = different(shares);
  if (values.empty()) return weights;
  const double most = values.back();
  const bool is_crowded = values.size() > BL_MOST_CLASSES;
  const auto neat = is_crowded ? std::nullopt : neat_grade(values);
  const double top = neat ? *neat : kMostGrade;
  const double range = std::log(most / values.front());
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0) continue;
    double ratio = shares[i] / most;
    if (is_crowded) {
      const double place = std::round(-std::log(ratio) / range * (BL_MOST_CLASSES - 1));
      ratio = std::exp(-place / (BL_MOST_CLASSES - 1) * range);
    }
    weights[i] = static_cast<uint32_t>(std::clamp(std::round(ratio * top), 1.0, top));
  }
  return weights;
}

std::vector<double> with_least_share(std::span<const uint32_t> weights,
                                     std::span<const double> fair, double least) {
  BALLAST_CHECK(weights.size() == fair.size());
  const double all_fair = std::accumulate(fair.begin(), fair.end(), 0.0);
  std::vector<double> shares(weights.begin(), weights.end());
  std::vector<bool> is_raised(weights.size(), false);
  double raised = 0;                                                // shares of those together
  double sum = std::accumulate(shares.begin(), shares.end(), 0.0);  // weights of the others
  for (bool again = least > 0; again;) {
    again = false;
    // What is left for the others shrinks with each that is raised, so more may fall under theirs.
    for (size_t i = 0; i < shares.size(); ++i) {
      const double floor = least * fair[i] / all_fair;
      if (is_raised[i] || fair[i] == 0) continue;
      if (sum > 0 && weights[i] / sum * (1 - raised) >= floor) continue;
      is_raised[i] = again = true;
      raised += floor;
      sum -= weights[i];
    }
  }
  if (raised == 0) return {};
  for (size_t i = 0; i < shares.size(); ++i) {
    shares[i] = is_raised[i] ? least * fair[i] / all_fair
                             : (sum > 0 ? weights[i] / sum * std::max(0.0, 1 - raised) : 0);
  }
  return shares;
}

std::vector<double> least_first(std::span<const uint64_t> open, std::span<const double> fair,
                                double more) {
  BALLAST_CHECK(open.size() == fair.size());
  std::vector<size_t> order;
  for (size_t i = 0; i < open.size(); ++i)
    if (fair[i] > 0) order.push_back(i);
  const auto level_of = [&](size_t i) { return static_cast<double>(open[i]) / fair[i]; };
  std::ranges::sort(order, {}, level_of);
  // The level, as open connections for each unit of `fair`, that the least loaded ones rise to.
  double level = 0;
  double all_open = 0;
  double all_fair = 0;
  for (const size_t i : order) {
    if (all_fair > 0 && level_of(i) >= level) break;
    all_open += static_cast<double>(open[i]);
    all_fair += fair[i];
    level = (all_open + more) / all_fair;
  }
  std::vector<double> get(open.size(), 0);
  for (const size_t i : order)
    get[i] = std::max(0.0, level * fair[i] - static_cast<double>(open[i]));
  return get;
}

}  // namespace ballast::lb
