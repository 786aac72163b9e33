// SPDX-License-Identifier: Apache-2.0
// Tells systemd (Type=notify) how a process is, by its datagram protocol (sd_notify(3)); does
// nothing when $NOTIFY_SOCKET is not set.
#pragma once

#include <string_view>

#include "base/result.h"

namespace ballast::app {

// `state` is lines such as "READY=1", "STOPPING=1", "STATUS=…".
Result<> notify_service_manager(std::string_view state);

}  // namespace ballast::app
