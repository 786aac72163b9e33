// SPDX-License-Identifier: Apache-2.0
#include "trace/read_trace.h"

#include "trace/capture.h"
#include "trace/text_trace.h"

namespace ballast::trace {
namespace {

constexpr size_t kLookedAt = 4096;

Form form_of(std::string_view beginning, Form asked) {
  if (asked != Form::kAny) return asked;
  return is_capture(beginning) ? Form::kCapture : text_form(beginning);
}

Result<> read_form(InputFile& file, Form form, const TraceOptions& options, RequestCounter& counter,
                   Workload& workload) {
  const Progress progress = options.progress ? options.progress : [](uint64_t, uint64_t) {};
  switch (form) {
    case Form::kCapture:
      return read_capture(file, options, counter, workload);
    case Form::kMonitor:
      return read_monitor(file, counter, workload, progress);
    case Form::kKeys:
    case Form::kAny:
      break;
  }
  if (is_capture(file.peek(4)))
    return fail(ErrorCode::kInvalid, file.name() + ": is a capture, not text");
  return read_keys(file, counter, workload, progress);
}

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
  Workload workload;
  const Result<> read =
      read_form(file, form_of(beginning, options.form), options, counter, workload);
  if (!read) return Unexpected(read.error());
  if (file.error() != 0) return fail_errno("read " + file.name(), file.error());
  if (counter.requests() == 0)
    return fail(ErrorCode::kInvalid, file.name() + ": holds no request to a key");
  counter.finish(workload);
  return workload;
}

}  // namespace ballast::trace
