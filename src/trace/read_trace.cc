// SPDX-License-Identifier: Apache-2.0
#include "trace/read_trace.h"

#include <cstring>

#include "trace/text_trace.h"

namespace ballast::trace {
namespace {

constexpr size_t kLookedAt = 4096;

}  // namespace

Result<Workload> read_trace(const std::string& path, const TraceOptions& options) {
  auto opened = InputFile::open(path);
  if (!opened) return Unexpected(opened.error());
  InputFile& file = **opened;
  const std::string_view beginning = file.peek(kLookedAt);
  if (beginning.empty() && file.error() == 0)
    return fail(ErrorCode::kInvalid, file.name() + ": is empty");
  RequestCounter counter(options.commands != nullptr ? *options.commands : built_in_commands(),
                         options.most_keys);
  const Progress progress = options.progress ? options.progress : [](uint64_t, uint64_t) {};
  Workload workload;
  const Form form = options.form == Form::kAny ? text_form(beginning) : options.form;
  const Result<> read = form == Form::kMonitor ? read_monitor(file, counter, workload, progress)
                                               : read_keys(file, counter, workload, progress);
  if (!read) return Unexpected(read.error());
  if (file.error() != 0) return fail_errno("read " + file.name(), file.error());
  if (counter.requests() == 0)
    return fail(ErrorCode::kInvalid, file.name() + ": holds no request to a key");
  counter.finish(workload);
  return workload;
}

}  // namespace ballast::trace
