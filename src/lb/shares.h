// SPDX-License-Identifier: Apache-2.0
// Arithmetic of shares: into whole weights, up to a least share, and by what each has open. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ballast::lb {

// Whole numbers in the proportion of `shares` (finite, not negative): 0 stays 0, all else is at
// least 1 and at most DispatchTable::kMostWeight. Small ones if those are exact. More than
// BL_MOST_CLASSES different shares are brought into that many classes, evenly by ratio: for shares
// of 1 to 1,000 each is then within 6 % of its own.
std::vector<uint32_t> whole_weights(std::span<const double> shares);

// P(i) = weights[i] / their sum, raised where it is under least * fair[i] / sum of `fair` to just
// that, while the others keep their proportion. Not all `fair` are 0, `least` is 0 to 1. Empty:
// none had to be raised.
std::vector<double> with_least_share(std::span<const uint32_t> weights,
                                     std::span<const double> fair, double least);

// Of the next `more` (> 0) that come, how many each gets if every one goes where open[i] / fair[i]
// is least; their sum is `more`. Those with fair[i] = 0 get none; not all are.
std::vector<double> least_first(std::span<const uint64_t> open, std::span<const double> fair,
                                double more);

}  // namespace ballast::lb
