// SPDX-License-Identifier: Apache-2.0
#include "balance/awfd.h"

#include <algorithm>
#include <cmath>

#include "balance/dispatch_table.h"

namespace ballast::balance {
namespace {

constexpr double kNearStep = 1e-9;

bool is_amount(double value) { return std::isfinite(value) && value >= 0; }

Unexpected invalid(const char* what, double value) {
  return fail(ErrorCode::kInvalid,
              std::string(what) + " of " + std::to_string(value) + ": not a number from 0 up");
}

}  // namespace

Result<double> available_capacity(double utilisation, double capacity) {
  if (!is_amount(utilisation)) return invalid("utilisation", utilisation);
  if (!is_amount(capacity)) return invalid("capacity", capacity);
  return std::max(0.0, 1 - utilisation) * capacity;
}

Result<std::vector<uint32_t>> awfd_weights(std::span<const double> available, uint32_t m) {
  if (available.empty() || available.size() > DispatchTable::kMostInstances)
    return fail(ErrorCode::kInvalid, "weights of " + std::to_string(available.size()) +
                                         " instances: from 1 to " +
                                         std::to_string(DispatchTable::kMostInstances));
  if (m > DispatchTable::kMostWeight)
    return fail(ErrorCode::kInvalid, "m of " + std::to_string(m) + ": at most " +
                                         std::to_string(DispatchTable::kMostWeight));
  for (const double a : available) {
    if (!is_amount(a)) return invalid("available capacity", a);
  }
  const double most = *std::max_element(available.begin(), available.end());
  std::vector<uint32_t> weights(available.size(), 1);
  if (m == 0 || most == 0) return weights;
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<uint32_t>(m * std::min(1.0, available[i] / most + kNearStep));
  return weights;
}

}  // namespace ballast::balance
