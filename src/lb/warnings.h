// SPDX-License-Identifier: Apache-2.0
// What is allowed and will hardly do what it is meant to.
#pragma once

#include <string>
#include <vector>

#include "lb/neighbours.h"
#include "model/lb.h"

namespace ballast::lb {

// NAT where the kernel does not forward, an `l2` instance behind a gateway, a VIP that is this
// host's own address. Of instances, those that are watched.
std::vector<std::string> warnings(const std::vector<model::Vip>& vips,
                                  const Neighbours& neighbours);

}  // namespace ballast::lb
