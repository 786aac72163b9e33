// SPDX-License-Identifier: Apache-2.0
// What a trace asks for, as the models take it: the hottest keys with the shares that were
// measured and their own places, the others by the law that fits, or as measured if none does.
#pragma once

#include <cstddef>

#include "sim/layout.h"
#include "sim/zipf_fit.h"
#include "trace/workload.h"

namespace ballast::sim {

// `objects`: how many there are, seen or not; 0: to be estimated.
ZipfFit fit_workload(const trace::Workload& workload, uint64_t objects);

// So many of the keys enter with the share that was measured: their counts say it well enough.
size_t measured_keys(const trace::Workload& workload, const ZipfFit& fit);

Demand workload_demand(const trace::Workload& workload, const ZipfFit& fit, size_t head);

}  // namespace ballast::sim
