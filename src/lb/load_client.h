// SPDX-License-Identifier: Apache-2.0
// Asks one instance for its load, and waits: what a balancer hears, for people who look.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "model/tier.h"
#include "proto/agent_check.h"
#include "proto/load_report.h"

namespace ballast::lb {

Result<proto::LoadReport> ask_agent(const model::Endpoint& agent, const std::string& secret,
                                    Nanos timeout);
Result<proto::AgentCheck> ask_agent_check(const model::Endpoint& agent, Nanos timeout);

}  // namespace ballast::lb
