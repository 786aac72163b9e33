// SPDX-License-Identifier: Apache-2.0
// Traces that are text: keys one a line, `KEY COUNT` lines, and what MONITOR printed.
#pragma once

#include "base/result.h"
#include "trace/input_file.h"
#include "trace/read_trace.h"
#include "trace/request_counter.h"
#include "trace/workload.h"

namespace ballast::trace {

// By the first line that is not empty: what MONITOR prints is kMonitor, all else kKeys.
Form text_form(std::string_view beginning);

// A first line that ends in a space and a whole number makes all of them `KEY COUNT`.
Result<> read_keys(InputFile& file, RequestCounter& counter, Workload& workload,
                   const Progress& progress);

Result<> read_monitor(InputFile& file, RequestCounter& counter, Workload& workload,
                      const Progress& progress);

}  // namespace ballast::trace
