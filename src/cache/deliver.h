// SPDX-License-Identifier: Apache-2.0
// Where a request's answer goes, whatever carried it.
#pragma once

#include <string_view>

#include "cache/request.h"

namespace ballast::cache {

// A piece of the answer, to the client or to the maker of the request; to nobody if it is nobody's
// any more.
void deliver(Request& request, std::string_view piece, bool last);
// An error instead of an answer; an answer that still comes finds nobody. `text` without the dash.
void deliver_error(Request& request, std::string_view text);

}  // namespace ballast::cache
