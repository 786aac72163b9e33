// SPDX-License-Identifier: Apache-2.0
#include "loader/capture_tap.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace ballast::loader {
namespace {

constexpr size_t kPages = 256;  // of each CPU's ring: 1 MiB

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Result<Descriptor> open_pin(const std::string& pins, const char* name) {
  const std::string path = pins + "/" + name;
  Descriptor map(bpf_obj_get(path.c_str()));
  if (map.get() >= 0) return map;
  if (errno == ENOENT) return fail(ErrorCode::kState, path + ": no balancer has its tables there");
  return fail_errno("open " + path, errno);
}

}  // namespace

class CaptureTap::Impl {
 public:
  explicit Impl(OnEvent on_event) : on_event_(std::move(on_event)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (is_drawing_) (void)draw({});
    perf_buffer__free(ring_);
  }

  Result<> open(const Options& options) {
    auto settings = open_pin(options.pins, "settings");
    if (!settings) return Unexpected(settings.error());
    settings_ = std::move(*settings);
    const auto captured = open_pin(options.pins, "captured");
    if (!captured) return Unexpected(captured.error());
    // The kernel lets go of the lock whatever ends this process.
    lock_ = Descriptor(::open(options.pins.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
      return fail(ErrorCode::kState, options.pins + ": another capture runs");
    ring_ = perf_buffer__new(captured->get(), kPages, take, lose, this, nullptr);
    if (ring_ == nullptr) return fail_errno("open the capture's rings", errno);
    const Result<> drawn = draw({options.one_in, options.length});
    is_drawing_ = bool(drawn);
    return drawn;
  }

  Result<> poll(int timeout_ms) {
    const int taken = perf_buffer__poll(ring_, timeout_ms);
    if (taken < 0 && taken != -EINTR) return fail_errno("read captured packets", -taken);
    return {};
  }

  uint64_t lost() const { return lost_; }

 private:
  Result<> draw(const bl_settings& settings) const {
    const uint32_t zero = 0;
    if (bpf_map_update_elem(settings_.get(), &zero, &settings, BPF_ANY) != 0)
      return fail_errno("write map settings", errno);
    return {};
  }

  static void take(void* self, int cpu, void* data, uint32_t size) {
    bl_capture_event event;
    if (size < sizeof(event)) return;
    std::memcpy(&event, data, sizeof(event));
    // The kernel pads what it hands over.
    if (event.captured > size - sizeof(event)) return;
    const auto* bytes = static_cast<const uint8_t*>(data) + sizeof(event);
    static_cast<Impl*>(self)->on_event_(cpu, event, {bytes, event.captured});
  }
  static void lose(void* self, int /*cpu*/, unsigned long long count) {
    static_cast<Impl*>(self)->lost_ += count;
  }

  OnEvent on_event_;
  Descriptor settings_;
  Descriptor lock_;
  perf_buffer* ring_ = nullptr;
  bool is_drawing_ = false;
  uint64_t lost_ = 0;
};

CaptureTap::CaptureTap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CaptureTap::~CaptureTap() = default;

Result<std::unique_ptr<CaptureTap>> CaptureTap::open(const Options& options, OnEvent on_event) {
  auto impl = std::make_unique<Impl>(std::move(on_event));
  if (const Result<> opened = impl->open(options); !opened) return Unexpected(opened.error());
  return std::unique_ptr<CaptureTap>(new CaptureTap(std::move(impl)));
}

Result<> CaptureTap::poll(int timeout_ms) { return impl_->poll(timeout_ms); }
uint64_t CaptureTap::lost() const { return impl_->lost(); }

}  // namespace ballast::loader
