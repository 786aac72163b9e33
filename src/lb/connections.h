// SPDX-License-Identifier: Apache-2.0
// The connections that are in the packet path's table, as JSON: what `ballast lb connections`
// shows. Flows of which one packet was seen are not among them. docs/reference/lb-api.md.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/result.h"
#include "lb/balancer.h"

namespace ballast::lb {

inline constexpr uint32_t kMostListed = 10'000;  // in one answer

// What they must have; empty: anything.
struct ConnectionFilter {
  std::string vip;  // names
  std::string instance;
  std::string source;     // an address
  uint32_t limit = 1000;  // are listed
};

// What the table's entries are given names with. A copy, so that a walk through the table, which
// may take half a second, needs no loop.
struct ConnectionNames {
  struct Instance {
    std::string vip;
    std::string name;
    HostAddress address;
    uint16_t port_be = 0;  // 0: that of the flow
  };
  std::set<std::string> vips;              // configured ones
  std::map<uint32_t, Instance> instances;  // by index
  AgeLimits limits;
};

// On the balancer's loop.
ConnectionNames connection_names(const Balancer& balancer);

// On any thread; takes half a second at most. In the table's order, which is none; "more" if there
// are, or if the time did not do for the whole table. kInvalid for a VIP or an instance that is not
// there and for what is no address.
Result<std::string> connections_json(const loader::LbProgram& program, const ConnectionNames& names,
                                     const ConnectionFilter& filter);

}  // namespace ballast::lb
