// SPDX-License-Identifier: Apache-2.0
// Adaptive weighted flow dispatching: weights from what each instance has free, for a
// DispatchTable. Spotlight, arXiv 1806.08455.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace ballast::balance {

// A = (1 - U) * C, in the unit of the capacity. A utilisation above 1 (work beyond the nominal
// capacity) leaves 0. kInvalid if either is negative, infinite or not a number.
Result<double> available_capacity(double utilisation, double capacity);

// w = floor(m * A / max A). An A that misses a step by under 10^-9 of the largest takes it, so that
// the unit of A does not matter.
//
// m = 0 is ECMP: all weights are 1. m = 1 leaves only the instances with the most (least congested
// first), a large m comes near to proportion. Where no instance has anything free all weights are 1
// as well. kInvalid for an A that is negative, infinite or not a number, for no A at all or more
// than DispatchTable::kMostInstances, and for m above DispatchTable::kMostWeight.
Result<std::vector<uint32_t>> awfd_weights(std::span<const double> available, uint32_t m);

}  // namespace ballast::balance
