// SPDX-License-Identifier: Apache-2.0
#include "lb/load_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "lb/agent_poll.h"
#include "lb/caller.h"
#include "lb/turns.h"
#include "proto/agent_check.h"
#include "proto/json_number.h"
#include "proto/metric_text.h"

namespace ballast::lb {
namespace {

using model::LoadSource;

// Polls leave and agents' answers are looked for no more often: each wakening has its price.
constexpr Nanos kTick = 4 * kMillisecond;
// To read JSON takes memory and time many times its size, and a figure needs little of it.
constexpr size_t kMostJson = 64 * 1024;

std::string key_of(const LoadTarget& target) {
  return fmt::format("{} {} {} {} {}", static_cast<int>(target.source), target.address.text(),
                     target.full, target.path, target.metric);
}

bool is_http(LoadSource source) {
  return source == LoadSource::kHttpJson || source == LoadSource::kPrometheus;
}

Result<> check(const LoadTarget& target) {
  if (target.source == LoadSource::kNone || target.address.length == 0)
    return fail(ErrorCode::kInvalid, "a load source without a kind or an address");
  if (!is_http(target.source)) return {};
  const bool has_blank =
      std::ranges::any_of(target.path, [](unsigned char byte) { return byte <= ' '; });
  if (!target.path.starts_with('/') || has_blank)
    return fail(ErrorCode::kInvalid, "\"" + target.path + "\" is no path");
  if (!std::isfinite(target.full) || target.full <= 0)
    return fail(ErrorCode::kInvalid, "the metric's value at full load must be above 0");
  return {};
}

void take_report(LoadState& state, const proto::LoadReport& report) {
  state.utilisation = report.utilisation;
  state.cores = report.cores;
  state.connections = report.connections;
  state.accept_queue = report.accept_queue;
  state.latency_us = report.latency_us;
  state.incarnation = report.incarnation;
  state.number = report.number;
}

// What a line does not speak of stays as it was, at first all of the weight, as with HAProxy.
void take_check(LoadState& state, bool& is_down, bool& is_out, const proto::AgentCheck& check) {
  if (check.weight || !state.factor) state.factor = check.weight.value_or(1);
  if (check.health) is_down = *check.health == proto::AgentCheck::Health::kDown;
  if (check.admin) is_out = *check.admin != proto::AgentCheck::Admin::kReady;
  state.drains = is_down || is_out;
}

}  // namespace

class LoadSources::Impl {
 public:
  Impl(io::Loop& loop, LoadOptions options)
      : loop_(loop), options_(std::move(options)), agents_(options_.secret) {}
  ~Impl() {
    loop_.cancel(timer_);
    loop_.cancel(fresh_timer_);
  }

  Result<uint32_t> add(const LoadTarget& target);
  void remove(uint32_t id);
  const LoadState& state(uint32_t id) const { return slots_.at(id)->state; }

  size_t size() const { return slots_.size(); }
  const Histogram& lateness() const { return lateness_; }
  const Histogram& round_trips() const { return round_trips_; }
  uint64_t strays() const { return agents_.strays(); }

 private:
  struct Slot {
    std::string key;
    LoadTarget target;
    LoadState state;
    proto::MetricSelector selector;  // kPrometheus
    std::unique_ptr<Caller> caller;  // not for kAgent
    uint32_t users = 1;
    bool is_asked = false;  // without a good answer so far
    bool is_down = false;   // an agent-check's last words on its health
    bool is_out = false;    // and on its operation
  };
  void begin_fresh();
  void turn();
  void arm();
  void ask(uint32_t id, Slot& slot, Nanos now);
  void hear(Slot& slot, const Result<CallAnswer>& answer);
  void hear_figure(Slot& slot, const CallAnswer& answer);
  static void refuse(Slot& slot, const std::string& why);
  static void accept(Slot& slot, Nanos now);

  io::Loop& loop_;
  LoadOptions options_;
  AgentPoll agents_;
  Turns turns_;
  std::vector<uint32_t> fresh_;                                       // added, not in turns_ yet
  boost::unordered_flat_map<uint32_t, std::unique_ptr<Slot>> slots_;  // by id
  std::map<std::string, uint32_t> by_key_;
  uint32_t next_id_ = 0;
  io::Loop::Timer timer_{};
  io::Loop::Timer fresh_timer_{};
  Histogram lateness_;
  Histogram round_trips_;
};

Result<uint32_t> LoadSources::Impl::add(const LoadTarget& target) {
  if (const auto checked = check(target); !checked) return Unexpected(checked.error());
  const std::string key = key_of(target);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    ++slots_.at(found->second)->users;
    return found->second;
  }
  auto made = std::make_unique<Slot>();
  Slot& slot = *made;
  slot.key = key;
  slot.target = target;
  if (target.source == LoadSource::kPrometheus) {
    auto selector = proto::parse_metric_selector(target.metric);
    if (!selector) return Unexpected(selector.error());
    slot.selector = std::move(*selector);
  }
  const uint32_t id = next_id_++;
  if (target.source == LoadSource::kAgent) {
    if (options_.secret.empty())
      return fail(ErrorCode::kInvalid, "agents are asked with a secret, and there is none");
    if (const auto open = agents_.open_for(target.address); !open) return Unexpected(open.error());
  } else {
    const bool is_line = target.source == LoadSource::kAgentCheck;
    const bool is_json = target.source == LoadSource::kHttpJson;
    CallOptions options{
        .kind = is_line ? CallOptions::Kind::kLine : CallOptions::Kind::kHttp,
        .address = target.address,
        .path = target.path,
        .keeps_connection = !is_line,
        .timeout = options_.timeout,
        .most_bytes =
            is_line ? 4096
                    : std::min(options_.most_answer, is_json ? kMostJson : options_.most_answer)};
    slot.caller = std::make_unique<Caller>(
        loop_, std::move(options),
        [this, id](const Result<CallAnswer>& answer) { hear(*slots_.at(id), answer); });
  }
  slots_.emplace(id, std::move(made));
  by_key_[key] = id;
  // Thousands may be added at once: their polls are due from when the loop comes to them.
  fresh_.push_back(id);
  if (fresh_.size() == 1) fresh_timer_ = loop_.after(0, [this] { begin_fresh(); });
  return id;
}

void LoadSources::Impl::begin_fresh() {
  const Nanos now = now_ns();
  for (const uint32_t id : fresh_)
    if (slots_.contains(id)) turns_.add(id, options_.interval, now);
  fresh_.clear();
  arm();
}

void LoadSources::Impl::remove(uint32_t id) {
  const auto found = slots_.find(id);
  BALLAST_CHECK(found != slots_.end());
  if (--found->second->users > 0) return;
  turns_.remove(id);
  agents_.forget(id);
  by_key_.erase(found->second->key);
  Caller::retire(std::move(found->second->caller));
  slots_.erase(found);
}

void LoadSources::Impl::arm() {
  loop_.cancel(timer_);
  const auto due = turns_.next_due();
  if (!due) return;
  const Nanos wait = agents_.is_waiting() ? kTick : std::max(kTick, *due - now_ns());
  timer_ = loop_.after(wait, [this] { turn(); });
}

void LoadSources::Impl::turn() {
  // Answers are fetched in batches: to be woken for each would cost more than to read it.
  const Nanos now = now_ns();
  agents_.read(now, [&](uint32_t id, const Result<proto::LoadReport>& report, Nanos round_trip) {
    Slot& slot = *slots_.at(id);
    if (!report) return refuse(slot, report.error().message);
    take_report(slot.state, *report);
    round_trips_.record(round_trip);
    accept(slot, now);
  });
  const Nanos sent = now_ns();
  while (const auto due = turns_.take(sent)) {
    lateness_.record(sent - due->due);
    ask(due->id, *slots_.at(due->id), sent);
  }
  agents_.send();
  arm();
}

void LoadSources::Impl::ask(uint32_t id, Slot& slot, Nanos now) {
  ++slot.state.polls;
  if (slot.is_asked) {
    ++slot.state.missed;
    if (slot.state.error.empty())
      slot.state.error = fmt::format("no answer within {} ms", options_.interval / kMillisecond);
  }
  slot.is_asked = true;
  if (slot.target.source == LoadSource::kAgent) {
    agents_.ask(id, slot.target.address, now);
  } else if (!slot.caller->is_busy()) {
    slot.caller->ask();
  }
}

void LoadSources::Impl::refuse(Slot& slot, const std::string& why) {
  ++slot.state.refused;
  slot.state.error = why;
}

void LoadSources::Impl::accept(Slot& slot, Nanos now) {
  slot.is_asked = false;
  slot.state.missed = 0;
  ++slot.state.answers;
  slot.state.heard_at = now;
  slot.state.error.clear();
}

void LoadSources::Impl::hear(Slot& slot, const Result<CallAnswer>& answer) {
  if (!answer) {
    const ErrorCode code = answer.error().code;
    if (code == ErrorCode::kInvalid || code == ErrorCode::kLimit)
      return refuse(slot, answer.error().message);
    slot.state.error = answer.error().message;
    return;
  }
  if (slot.target.source != LoadSource::kAgentCheck) return hear_figure(slot, *answer);
  const auto check = proto::parse_agent_check(answer->text);
  if (!check) return refuse(slot, check.error().message);
  take_check(slot.state, slot.is_down, slot.is_out, *check);
  accept(slot, now_ns());
}

void LoadSources::Impl::hear_figure(Slot& slot, const CallAnswer& answer) {
  if (answer.status != 200) return refuse(slot, fmt::format("answered {}", answer.status));
  const auto figure = slot.target.source == LoadSource::kHttpJson
                          ? proto::find_json_number(answer.text, slot.target.metric)
                          : proto::find_metric(answer.text, slot.selector);
  if (!figure) return refuse(slot, figure.error().message);
  if (!std::isfinite(*figure) || *figure < 0)
    return refuse(
        slot,
        fmt::format("{} is {}, which no load can be",
                    slot.target.metric.empty() ? "the document" : slot.target.metric, *figure));
  slot.state.utilisation = std::min(*figure / slot.target.full, 1.0);
  accept(slot, now_ns());
}

Result<std::unique_ptr<LoadSources>> LoadSources::create(io::Loop& loop, LoadOptions options) {
  if (options.interval <= 0 || options.timeout <= 0)
    return fail(ErrorCode::kInvalid, "the interval and the timeout must be above 0");
  return std::unique_ptr<LoadSources>(
      new LoadSources(std::make_unique<Impl>(loop, std::move(options))));
}

LoadSources::LoadSources(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LoadSources::~LoadSources() = default;

Result<uint32_t> LoadSources::add(const LoadTarget& target) { return impl_->add(target); }
void LoadSources::remove(uint32_t id) { impl_->remove(id); }
const LoadState& LoadSources::state(uint32_t id) const { return impl_->state(id); }
size_t LoadSources::size() const { return impl_->size(); }
const Histogram& LoadSources::lateness() const { return impl_->lateness(); }
const Histogram& LoadSources::round_trips() const { return impl_->round_trips(); }
uint64_t LoadSources::strays() const { return impl_->strays(); }

}  // namespace ballast::lb
