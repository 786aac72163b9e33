// SPDX-License-Identifier: Apache-2.0
// Captures of Redis traffic, pcap and pcapng, by libpcap, which is named only in capture.cc.
#pragma once

#include <string_view>

#include "base/result.h"
#include "trace/input_file.h"
#include "trace/read_trace.h"
#include "trace/request_counter.h"
#include "trace/workload.h"

namespace ballast::trace {

// By the first four bytes of the file.
bool is_capture(std::string_view beginning);

// Counts the commands in segments to one of the ports; replies are not looked at.
Result<> read_capture(InputFile& file, const TraceOptions& options, RequestCounter& counter,
                      Workload& workload);

}  // namespace ballast::trace
