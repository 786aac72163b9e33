// SPDX-License-Identifier: Apache-2.0
#include "lb/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "base/check.h"
#include "lb/caller.h"
#include "lb/turns.h"

namespace ballast::lb {
namespace {

constexpr size_t kMostBody = 64 * 1024;

std::string key_of(const HealthTarget& target) {
  return fmt::format("{} {} {} {} {} {} {}", static_cast<int>(target.kind), target.address.text(),
                     target.path, target.interval, target.timeout, target.rise, target.fall);
}

}  // namespace

Result<> check_target(const HealthTarget& target) {
  if (target.kind == model::HealthCheck::kNone || target.address.length == 0)
    return fail(ErrorCode::kInvalid, "a health check without a kind or an address");
  if (target.interval <= 0 || target.timeout <= 0 || target.rise == 0 || target.fall == 0)
    return fail(ErrorCode::kInvalid, "a health check's times, rise and fall must be above 0");
  const bool has_blank =
      std::ranges::any_of(target.path, [](unsigned char byte) { return byte <= ' '; });
  if (!target.path.starts_with('/') || has_blank)
    return fail(ErrorCode::kInvalid, "\"" + target.path + "\" is no path");
  return {};
}

class HealthChecks::Impl {
 public:
  Impl(io::Loop& loop, OnChange on_change) : loop_(loop), on_change_(std::move(on_change)) {}
  ~Impl() { loop_.cancel(timer_); }

  Result<uint32_t> add(const HealthTarget& target, bool assume_up);
  void remove(uint32_t id);
  const HealthState& state(uint32_t id) const { return slots_.at(id).state; }
  size_t size() const { return slots_.size(); }

 private:
  struct Slot {
    std::string key;
    HealthTarget target;
    HealthState state;
    std::unique_ptr<Caller> caller;
    uint32_t users = 1;
    uint32_t good_in_row = 0;
    uint32_t bad_in_row = 0;
    bool is_overdue = false;  // its turn came while it was busy
  };
  void turn();
  void arm();
  void judge(uint32_t id, const Result<CallAnswer>& answer);
  bool count(Slot& slot, const std::string& cause);

  io::Loop& loop_;
  OnChange on_change_;
  Turns turns_;
  std::map<uint32_t, Slot> slots_;
  std::map<std::string, uint32_t> by_key_;
  uint32_t next_id_ = 0;
  io::Loop::Timer timer_{};
};

Result<uint32_t> HealthChecks::Impl::add(const HealthTarget& target, bool assume_up) {
  if (const auto checked = check_target(target); !checked) return Unexpected(checked.error());
  const std::string key = key_of(target);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    ++slots_.at(found->second).users;
    return found->second;
  }
  const uint32_t id = next_id_++;
  const bool is_http = target.kind == model::HealthCheck::kHttp;
  CallOptions options{.kind = is_http ? CallOptions::Kind::kHttp : CallOptions::Kind::kConnect,
                      .address = target.address,
                      .path = target.path,
                      .needs_body = false,
                      .timeout = target.timeout,
                      .most_bytes = kMostBody};
  Slot& slot = slots_[id];
  slot.key = key;
  slot.target = target;
  slot.state.since = now_ns();
  if (assume_up) slot.state.health = Health::kUp;
  slot.caller =
      std::make_unique<Caller>(loop_, std::move(options),
                               [this, id](const Result<CallAnswer>& answer) { judge(id, answer); });
  by_key_[key] = id;
  turns_.add(id, target.interval, now_ns(), true);
  arm();
  return id;
}

void HealthChecks::Impl::remove(uint32_t id) {
  const auto found = slots_.find(id);
  BALLAST_CHECK(found != slots_.end());
  if (--found->second.users > 0) return;
  turns_.remove(id);
  by_key_.erase(found->second.key);
  Caller::retire(std::move(found->second.caller));
  slots_.erase(found);
}

void HealthChecks::Impl::arm() {
  loop_.cancel(timer_);
  if (const auto due = turns_.next_due())
    timer_ = loop_.after(std::max<Nanos>(0, *due - now_ns()), [this] { turn(); });
}

void HealthChecks::Impl::turn() {
  const Nanos now = now_ns();
  while (const auto due = turns_.take(now)) {
    Slot& slot = slots_.at(due->id);
    slot.is_overdue = slot.caller->is_busy();
    if (!slot.is_overdue) slot.caller->ask();
  }
  arm();
}

// True: its health became another.
bool HealthChecks::Impl::count(Slot& slot, const std::string& cause) {
  HealthState& state = slot.state;
  const bool is_good = cause.empty();
  ++state.checks;
  slot.good_in_row = is_good ? slot.good_in_row + 1 : 0;
  slot.bad_in_row = is_good ? 0 : slot.bad_in_row + 1;
  if (!is_good) {
    ++state.bad;
    state.last_cause = cause;
    state.last_bad_at = now_ns();
  }
  Health next = state.health;
  if (state.health == Health::kUnknown) next = is_good ? Health::kUp : Health::kDown;
  if (state.health == Health::kDown && slot.good_in_row >= slot.target.rise) next = Health::kUp;
  if (state.health == Health::kUp && slot.bad_in_row >= slot.target.fall) next = Health::kDown;
  if (next == state.health) return false;
  state.health = next;
  state.since = now_ns();
  return true;
}

void HealthChecks::Impl::judge(uint32_t id, const Result<CallAnswer>& answer) {
  Slot& slot = slots_.at(id);
  // No fault of the instance's, so neither good nor bad.
  const int error = answer ? 0 : answer.error().sys_errno;
  if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) return;
  std::string cause = answer ? "" : answer.error().message;
  const bool is_http = slot.target.kind == model::HealthCheck::kHttp;
  if (answer && is_http && (answer->status < 200 || answer->status > 399))
    cause = fmt::format("answered {}", answer->status);
  const bool has_changed = count(slot, cause);
  if (std::exchange(slot.is_overdue, false)) {
    turns_.hurry(id, now_ns());
    arm();
  }
  if (has_changed && on_change_) on_change_(id, HealthState(slot.state));
}

std::unique_ptr<HealthChecks> HealthChecks::create(io::Loop& loop, OnChange on_change) {
  return std::unique_ptr<HealthChecks>(
      new HealthChecks(std::make_unique<Impl>(loop, std::move(on_change))));
}

HealthChecks::HealthChecks(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HealthChecks::~HealthChecks() = default;

Result<uint32_t> HealthChecks::add(const HealthTarget& target, bool assume_up) {
  return impl_->add(target, assume_up);
}
void HealthChecks::remove(uint32_t id) { impl_->remove(id); }
const HealthState& HealthChecks::state(uint32_t id) const { return impl_->state(id); }
size_t HealthChecks::size() const { return impl_->size(); }

}  // namespace ballast::lb
