// SPDX-License-Identifier: Apache-2.0
// One number out of a JSON document (RFC 8259).
#pragma once

#include <string_view>

#include "base/result.h"

namespace ballast::proto {

// `path` names object members, or positions in arrays from 0, with dots between: "cores.0.load".
// Empty: the document itself. Of members of the same name the last counts. kInvalid: no JSON,
// nothing there, or no number. A number beyond a double's range makes the document no JSON.
Result<double> find_json_number(std::string_view document, std::string_view path);

}  // namespace ballast::proto
