// SPDX-License-Identifier: Apache-2.0
#include "loader/test_run.h"

#include <bpf/bpf.h>

#include <cerrno>

namespace ballast::loader {

Result<TestRun> test_run(int program_fd, std::span<const uint8_t> packet, uint32_t repeat) {
  TestRun run;
  run.packet.resize(packet.size() + 256);
  bpf_test_run_opts options{};
  options.sz = sizeof(options);
  options.data_in = packet.data();
  options.data_size_in = static_cast<uint32_t>(packet.size());
  options.data_out = run.packet.data();
  options.data_size_out = static_cast<uint32_t>(run.packet.size());
  options.repeat = static_cast<int>(repeat);
  if (bpf_prog_test_run_opts(program_fd, &options) != 0)
    return fail_errno("test-run of a packet of " + std::to_string(packet.size()) + " bytes", errno);
  run.packet.resize(options.data_size_out);
  run.action = options.retval;
  run.mean_ns = options.duration;
  return run;
}

}  // namespace ballast::loader
