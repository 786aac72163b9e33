// SPDX-License-Identifier: Apache-2.0
// The part of the decision that zones leave open: whether every read of nil finds a moment at which
// a delete, a flush or an expiry has emptied the register.
#pragma once

#include <optional>
#include <vector>

#include "zones.h"

namespace ballast::faults {

struct NilFailure {
  size_t operation = 0;  // the one that no order of effects can place
  Nanos at_ns = 0;
  bool undecided = false;  // the search grew past its bound; nothing was proved
};

// `zones` must be free of conflicts. Just-in-time linearization (Lowe, "Testing for
// linearizability", 2017): events in time order, each effect as late as it can be, equal
// configurations kept once.
std::optional<NilFailure> search_nil(const std::vector<Operation>& operations, const Zones& zones);

}  // namespace ballast::faults
