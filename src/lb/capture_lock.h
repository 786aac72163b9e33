// SPDX-License-Identifier: Apache-2.0
// Who reads the tap of the packet path: one process at a time, found out by a lock on the folder of
// its pinned maps, which the kernel takes back whatever ends the process.
#pragma once

#include <string>

#include "base/result.h"
#include "io/fd.h"
#include "loader/lb_program.h"

namespace ballast::lb {

// Held as long as the descriptor is open. kState: no tables in the folder, or another capture runs.
Result<io::Fd> lock_capture(const std::string& pins);

// Switches the tap off if its reader was killed before it could. For the balancer, now and then.
Result<> end_lost_capture(const loader::LbProgram& program, const std::string& pins);

}  // namespace ballast::lb
