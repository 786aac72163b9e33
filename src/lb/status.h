// SPDX-License-Identifier: Apache-2.0
// What a running balancer tells of itself, as JSON: what `ballast lb status` and `lb trace` show.
// The keys are described in docs/reference/lb-api.md.
#pragma once

#include <string>

#include "base/result.h"
#include "lb/balancer.h"

namespace ballast::lb {

// "new", "open", "closing", "reset".
const char* word_of(const bl_connection& connection);

std::string status_json(const Balancer& balancer);

// Where a packet of this flow would go now, and why. kInvalid for what is no flow. `source` and
// `destination` are "address:port", "[v6]:port".
Result<std::string> trace_json(const Balancer& balancer, const std::string& protocol,
                               const std::string& source, const std::string& destination);

}  // namespace ballast::lb
