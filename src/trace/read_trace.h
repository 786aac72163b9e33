// SPDX-License-Identifier: Apache-2.0
// A trace of requests to Redis, of any known form, into a Workload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "proto/command_table.h"
#include "trace/workload.h"

namespace ballast::trace {

enum class Form : uint8_t { kAny, kKeys, kMonitor, kCapture };

// Called now and then with the bytes read so far and the file's size, 0 if not known.
using Progress = std::function<void(uint64_t done, uint64_t size)>;

struct TraceOptions {
  Form form = Form::kAny;                         // kAny: by the content
  size_t most_keys = 1'000'000;                   // counted exactly; at least 1
  std::vector<uint16_t> ports = {6379};           // of servers, in captures
  const proto::CommandTable* commands = nullptr;  // null: the built-in one
  Progress progress = {};
};

// `path`: "-" is standard input. An error names the file and, where there is one, the line; also
// for a trace in which no request is found.
Result<Workload> read_trace(const std::string& path, const TraceOptions& options);

}  // namespace ballast::trace
