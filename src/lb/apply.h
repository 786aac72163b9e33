// SPDX-License-Identifier: Apache-2.0
// Writes what changed into a loaded program's maps, and reads what a former process left there.
#pragma once

#include "base/result.h"
#include "lb/tables.h"
#include "loader/lb_program.h"

namespace ballast::lb {

// Stops at the first error; the whole is to be tried again.
Result<> apply(const Writes& writes, const loader::LbProgram& program);

Result<Former> read_former(const loader::LbProgram& program);

}  // namespace ballast::lb
