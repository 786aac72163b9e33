// SPDX-License-Identifier: Apache-2.0
#include "loader/capture.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ballast::loader {
namespace {

constexpr size_t kPages = 64;  // of each CPU's ring, a power of two

bool set(int settings_fd, const bl_settings& wanted) {
  const uint32_t zero = 0;
  return bpf_map_update_elem(settings_fd, &zero, &wanted, BPF_ANY) == 0;
}

uint32_t id_of(int map_fd) {
  bpf_map_info info{};
  uint32_t size = sizeof(info);
  return bpf_obj_get_info_by_fd(map_fd, &info, &size) == 0 ? info.id : 0;
}

}  // namespace

struct Capture::Ring {
  explicit Ring(perf_buffer* of) : buffer(of) {}
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() { perf_buffer__free(buffer); }

  // What the kernel wrote after the event may be longer than what was captured, never shorter.
  static void take(void* of, int /*cpu*/, void* data, uint32_t size) {
    bl_capture_event event{};
    if (size < sizeof(event)) return;
    std::memcpy(&event, data, sizeof(event));
    const size_t captured = std::min<size_t>(event.captured, size - sizeof(event));
    const auto* bytes = static_cast<const uint8_t*>(data) + sizeof(event);
    static_cast<Capture*>(of)->visit_(event, {bytes, captured});
  }
  static void lose(void* of, int /*cpu*/, unsigned long long count) {
    static_cast<Capture*>(of)->lost_ += count;
  }

  perf_buffer* buffer;
};

Capture::Capture(int settings_fd, Visit visit)
    : settings_fd_(settings_fd), visit_(std::move(visit)) {}

Capture::~Capture() {
  set(settings_fd_, {});
  close(settings_fd_);
  if (captured_fd_ >= 0) close(captured_fd_);
}

Result<std::unique_ptr<Capture>> Capture::open(int settings_fd, int captured_fd,
                                               const CaptureSettings& settings, Visit visit) {
  std::unique_ptr<Capture> made(new Capture(settings_fd, std::move(visit)));
  perf_buffer* buffer =
      perf_buffer__new(captured_fd, kPages, Ring::take, Ring::lose, made.get(), nullptr);
  if (!buffer) return fail_errno("make the rings of the tap", errno);
  made->ring_ = std::make_unique<Ring>(buffer);
  if (!set(settings_fd, {std::max(settings.one_in, 1U), settings.length}))
    return fail_errno("switch the tap on", errno);
  return made;
}

Result<std::unique_ptr<Capture>> Capture::open(const std::string& pins,
                                               const CaptureSettings& settings, Visit visit) {
  const int settings_fd = bpf_obj_get((pins + "/settings").c_str());
  if (settings_fd < 0) return fail_errno("open the balancer's maps in " + pins, errno);
  const int captured_fd = bpf_obj_get((pins + "/captured").c_str());
  if (captured_fd < 0) {
    close(settings_fd);
    return fail_errno("open the balancer's maps in " + pins, errno);
  }
  auto made = open(settings_fd, captured_fd, settings, std::move(visit));
  // Closing it would take the rings out of the map again.
  if (made) {
    (*made)->captured_fd_ = captured_fd;
    (*made)->pins_ = pins;
  } else {
    close(captured_fd);
  }
  return made;
}

Result<std::unique_ptr<Capture>> Capture::open(const LbProgram& program,
                                               const CaptureSettings& settings, Visit visit) {
  const int settings_fd = dup(program.settings().fd());
  if (settings_fd < 0) return fail_errno("open the balancer's settings", errno);
  return open(settings_fd, program.captured_fd(), settings, std::move(visit));
}

bool Capture::is_current() const {
  if (pins_.empty()) return true;
  const int now = bpf_obj_get((pins_ + "/settings").c_str());
  const bool is_same = now >= 0 && id_of(now) == id_of(settings_fd_);
  if (now >= 0) close(now);
  return is_same;
}

Result<> Capture::poll(uint32_t timeout_ms) {
  const int visited = perf_buffer__poll(ring_->buffer, static_cast<int>(timeout_ms));
  if (visited < 0 && visited != -EINTR) return fail_errno("read the tap", -visited);
  if (visited <= 0 && !is_current())
    return fail(ErrorCode::kState,
                "other tables are in " + pins_ + " now: the balancer began anew");
  return {};
}

}  // namespace ballast::loader
