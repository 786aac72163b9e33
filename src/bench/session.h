// SPDX-License-Identifier: Apache-2.0
// One run of the load generator: connect, load, warm up, measure, wait for what is in flight.
#pragma once

#include "base/result.h"
#include "bench/report.h"
#include "bench/settings.h"

namespace ballast::bench {

// Blocks until the run is over; progress goes to stderr. Errors: a target cannot be reached or
// refuses to be set up, a replayed file cannot be read, the load phase got errors.
Result<Results> run_session(const Settings& settings);

}  // namespace ballast::bench
