// SPDX-License-Identifier: Apache-2.0
// Turns a RESP3 reply into the RESP2 form that redis gives where the change is mechanical. Commands
// whose RESP2 reply has another shape (e.g. ZRANGE WITHSCORES) need a RESP2 connection instead.
#pragma once

#include <string>
#include <string_view>

namespace ballast::proto {

// Appends the RESP2 form of one whole reply; false, and nothing appended, if it is malformed.
// Null becomes `$-1`, map, set and push arrays, double, big number and verbatim string bulk
// strings, boolean :0 or :1, bulk error a simple error; attributes are dropped.
bool downgrade(std::string_view resp3, std::string& out);

}  // namespace ballast::proto
