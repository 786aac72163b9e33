// SPDX-License-Identifier: Apache-2.0
#include "cache/shard.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "balance/hash.h"
#include "base/log.h"
#include "cache/client.h"
#include "cache/deliver.h"
#include "cache/peer.h"
#include "proto/resp_value.h"
#include "proto/resp_write.h"

namespace ballast::cache {
namespace {

std::string encode(std::initializer_list<std::string_view> args) {
  std::string wire;
  proto::append_command(wire, std::span(args.begin(), args.size()));
  return wire;
}

// Reads sent to the shard from now on could overtake it.
void leaves_shard_path(Request& request) {
  Request& queued = request.parent != nullptr ? *request.parent : request;
  if (queued.client != nullptr) queued.client->leaves_path(queued);
}

// With a rate limit, ten milliseconds' worth may pass at once: a finer limit would measure timers.
balance::TokenBucket make_bucket(double rate) { return balance::TokenBucket(rate, rate / 100); }

}  // namespace

Shard::Shard(io::Loop& loop, RequestPool& pool, NodeSender& nodes, telemetry::Durations& durations,
             ShardOptions options)
    : loop_(loop),
      pool_(pool),
      nodes_(nodes),
      durations_(durations),
      options_(std::move(options)),
      home_(options_.coherence, *this),
      bucket_(make_bucket(options_.rate)) {
  LinkOptions link{.address = options_.address,
                   .name = options_.home
                               ? options_.name_prefix + std::to_string(options_.coherence.epoch)
                               : options_.name_prefix + "reader",
                   .user = options_.user,
                   .password = options_.password,
                   .connect_timeout = options_.connect_timeout,
                   .silence = 3 * options_.timeout};
  for (const uint8_t proto : {uint8_t{2}, uint8_t{3}}) {
    link.proto = proto;
    links_[proto == 3] = std::make_unique<Link>(loop, pool, *this, link);
  }
  if (options_.caching && options_.home) {
    link.tracking = true;
    tracking_ = std::make_unique<Link>(loop, pool, *this, link);
  }
}

Shard::~Shard() { shut_down(); }

void Shard::open() {
  for (const auto& link : links_) link->open();
  if (tracking_) tracking_->open();
}

void Shard::shut_down() {
  for (const auto& link : links_) link->shut_down();
  if (tracking_) tracking_->shut_down();
}

bool Shard::up() const {
  return links_[0]->up() && links_[1]->up() && (!tracking_ || tracking_->up());
}

bool Shard::ready() const { return up() && (options_.home ? home_.ready() : options_.leaf->up()); }

std::string Shard::why() const {
  for (const Link* link : {links_[0].get(), links_[1].get(), tracking_.get()})
    if (link != nullptr && !link->up()) return link->cause().empty() ? "connecting" : link->cause();
  if (!options_.home && !options_.leaf->up())
    return options_.leaf->options().name + ": " + options_.leaf->why();
  if (!stepped_down_.empty()) return "another home is there: " + stepped_down_;
  return ready() ? "" : "waits for former leases to end";
}

std::string Shard::error() const {
  return "CLUSTERDOWN shard " + options_.text + " is down: " + why();
}

void Shard::read(std::string_view wire, Request& request, Nanos now) {
  request.path = Path::kShard;
  if (request.started == 0) request.started = now;
  forward(wire, request, now);
}

void Shard::forward(std::string_view wire, Request& request, Nanos now) {
  if (!busy_.empty() && request.guarded == nullptr && request.proto != kTracking) [[unlikely]]
    return deliver_error(request, busy_);
  if (enter(now)) return send_now(wire, request, now);
  hold_at(gate_, wire, request, now);
}

// Counts a request; false if the rate limit makes it wait behind those that wait already.
bool Shard::enter(Nanos now) {
  ++stats_.requests;
  window_.count(now);
  if (options_.rate <= 0) return true;
  return gate_.empty() && fill_gate_.empty() && bucket_.try_take(now);
}

void Shard::hold_at(Ring<Request*>& gate, std::string_view wire, Request& request, Nanos now) {
  request.deadline = now + options_.timeout;
  if (request.wire.data() != wire.data()) request.wire.assign(wire);
  pool_.hold(&request);
  gate.push_back(&request);
}

void Shard::send_now(std::string_view wire, Request& request, Nanos now) {
  request.deadline = now + options_.timeout;
  link(request.proto).send(wire, request);
}

// A command sent behind a long script on the same connection waits for its end. So when the links
// have gone silent the tracking connection asks whether there is one, and commands that come
// meanwhile get the shard's own refusal.
void Shard::look_for_script() {
  const bool silent = answers_ == answers_seen_ &&
                      links_[0]->in_flight() + links_[1]->in_flight() > 0 && tracking_->up();
  answers_seen_ = answers_;
  if (asked_busy_ || (!silent && busy_.empty())) return;
  asked_busy_ = true;
  ask_tracking(
      encode({"PING"}),
      [this](Request& request) {
        asked_busy_ = false;
        busy_.clear();
        if (request.reply.starts_with("-BUSY"))
          busy_ = request.reply.substr(1, request.reply.find("\r\n") - 1);
      },
      false);
}

bool Shard::begin(Request& request, Nanos now) {
  request.guarded = this;
  request.token = next_token_++;
  if (!options_.home) return true;
  if (request.flush) return home_.flush_begin(request.token, now);
  const size_t count = request.hashes.size();
  if (count == 1) [[likely]] {
    const std::string_view key = request.keys[0];
    return home_.write_begin(std::span(&key, 1), request.hashes, request.token, now);
  }
  const std::vector<std::string_view> keys(request.keys.begin(),
                                           request.keys.begin() + static_cast<ptrdiff_t>(count));
  return home_.write_begin(keys, request.hashes, request.token, now);
}

void Shard::end_write(Request& request, Nanos now) {
  request.guarded = nullptr;
  if (!options_.home) return;
  if (request.flush) return home_.flush_end(now);
  const size_t count = request.hashes.size();
  if (count == 1) [[likely]] {
    const std::string_view key = request.keys[0];
    return home_.write_end(std::span(&key, 1), request.hashes, now);
  }
  const std::vector<std::string_view> keys(request.keys.begin(),
                                           request.keys.begin() + static_cast<ptrdiff_t>(count));
  home_.write_end(keys, request.hashes, now);
}

void Shard::write(std::string_view wire, Request& request, Nanos now) {
  if (!busy_.empty()) return deliver_error(request, busy_);
  if (!options_.home) {
    leaves_shard_path(request);
    return options_.leaf->write(options_.index, wire, request);
  }
  if (down(request.proto)) {
    ++stats_.errors;
    return deliver_error(request, error());
  }
  request.started = now;
  if (enter(now)) return begin_and_send(wire, request, now);
  // It waits before its keys lose their copies, not after: else their reads would join the queue
  // that it waits in.
  request.path = Path::kHome;
  leaves_shard_path(request);
  request.gated_write = true;
  hold_at(gate_, wire, request, now);
}

void Shard::begin_and_send(std::string_view wire, Request& request, Nanos now) {
  if (!begin(request, now)) return wait(request, wire, now, nullptr);
  request.path = Path::kShard;
  send_now(wire, request, now);
}

void Shard::leave_gate(Nanos now) {
  while (!(gate_.empty() && fill_gate_.empty()) && bucket_.try_take(now)) {
    Ring<Request*>& gate = fill_gate_.empty() ? gate_ : fill_gate_;
    Request* request = gate.front();
    gate.pop_front();
    if (!request->gated_write) {
      send_now(request->wire, *request, now);
    } else if (down(request->proto)) {
      ++stats_.errors;
      deliver_error(*request, error());
    } else {
      begin_and_send(request->wire, *request, now);
    }
    pool_.release(request);
  }
}

void Shard::control(std::string_view wire, Request& request, Nanos now) {
  if (tracking_ == nullptr) return read(wire, request, now);
  request.proto = kTracking;
  request.path = Path::kShard;
  request.deadline = now + options_.timeout;
  ++stats_.requests;
  tracking_->send(wire, request);
}

void Shard::flush(std::string_view wire, Request& request, Nanos now) {
  request.flush = true;
  write(wire, request, now);
}

void Shard::guard(Request& guard, Nanos now, std::function<void()> ready) {
  if (begin(guard, now)) return ready();
  wait(guard, guard.wire, now, std::move(ready));
}

void Shard::end_guard(Request& guard, Nanos now) {
  if (guard.guarded == nullptr) return;
  if (home_.write_cancel(guard.token)) {
    const auto it = waiting_.find(guard.token);
    guard.guarded = nullptr;
    if (it == waiting_.end()) return;
    waiting_.erase(it);
    pool_.release(&guard);
    return;
  }
  end_write(guard, now);
}

void Shard::wait(Request& request, std::string_view wire, Nanos now, std::function<void()> ready) {
  request.path = Path::kHome;
  leaves_shard_path(request);
  if (request.wire.data() != wire.data()) request.wire.assign(wire);
  pool_.hold(&request);
  // No lease that delays it can run longer; then the shard itself is at fault.
  const Nanos longest = 2 * options_.coherence.lease + options_.timeout;
  waiting_.emplace(request.token, Waiting{&request, std::move(ready), now + longest});
}

void Shard::write_ready(uint64_t token) {
  const auto it = waiting_.find(token);
  if (it == waiting_.end()) return;
  Waiting waiting = std::move(it->second);
  waiting_.erase(it);
  if (waiting.ready) {
    waiting.ready();
  } else {
    const Nanos now = now_ns();
    durations_.write_wait.record(now - waiting.request->started);
    waiting.request->path = Path::kShard;
    send_now(waiting.request->wire, *waiting.request, now);
  }
  pool_.release(waiting.request);
}

void Shard::fail_waiting(Nanos now) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Waiting& waiting = it->second;
    const bool lost = waiting.ready == nullptr && down(waiting.request->proto);
    if ((!lost && waiting.deadline > now) || !home_.write_cancel(it->first)) {
      ++it;
      continue;
    }
    Request* request = waiting.request;
    it = waiting_.erase(it);
    request->guarded = nullptr;
    deliver_error(
        *request,
        lost ? error() : "CLUSTERDOWN shard " + options_.text + " takes no writes yet: " + why());
    pool_.release(request);
  }
}

void Shard::tick(Nanos now) {
  leave_gate(now);
  for (const auto& link : links_) link->tick(now);
  if (tracking_) tracking_->tick(now);
  if (options_.home) home_.tick(now);
  if (!waiting_.empty()) fail_waiting(now);
  if (tracking_) look_for_script();
  if (next_fence_ != 0 && now >= next_fence_) {
    next_fence_ = 0;
    if (up()) start_fence();
  }
}

void Shard::on_answer(Request& request, std::string_view piece, bool last, Nanos now) {
  if (last) {
    ++answers_;
    if (request.started != 0 && request.client != nullptr)
      (request.guarded != nullptr ? durations_.write : durations_.cold_read)
          .record(now - request.started);
    if (request.guarded != nullptr) end_write(request, now);
  }
  deliver(request, piece, last);
}

void Shard::on_timeout(Request& request) {
  ++stats_.timeouts;
  deliver_error(request, "ERR shard " + options_.text + " did not answer within " +
                             std::to_string(options_.timeout / kMillisecond) + " ms");
}

void Shard::on_failure(Request& request, const std::string& /*cause*/) {
  ++stats_.errors;
  if (request.guarded != nullptr) {
    // The shard may still apply it: its keys stay without copies until the fence says that it
    // cannot.
    pool_.hold(&request);
    orphans_.push_back(&request);
  }
  deliver_error(request, error());
}

void Shard::on_push(Link& link, std::string_view push) {
  if (&link != tracking_.get()) return;
  const auto value = proto::parse_value(push);
  if (!value || value->children.size() != 2 || value->children[0].string != "invalidate") return;
  const Nanos now = now_ns();
  const proto::Value& keys = value->children[1];
  if (keys.children.empty()) return home_.on_push_all(now);
  for (const proto::Value& key : keys.children)
    home_.on_push(key.string, balance::key_hash(key.string), now);
}

void Shard::send(Incarnation node, ToNode message) {
  nodes_.send_to_node(options_.index, node, std::move(message));
}

void Shard::ask_tracking(std::string_view wire, std::function<void(Request&)> done, bool gated) {
  Request* request = pool_.take();
  pool_.hold(request);
  request->done = std::move(done);
  request->proto = kTracking;
  request->reply_limit = options_.coherence.max_reply;
  const Nanos now = now_ns();
  if (!gated || enter(now)) {
    send_now(wire, *request, now);
  } else {
    hold_at(fill_gate_, wire, *request, now);
  }
  pool_.release(request);
}

struct Shard::Fill {
  uint64_t id;
  int64_t ttl_ms = -2;
  std::vector<std::string> replies;
  size_t left;
  bool failed = false;
  bool refused = false;
};

void Shard::read(uint64_t read_id, std::string_view key, std::span<const CachedCommand> commands) {
  auto fill = std::make_shared<Fill>();
  fill->id = read_id;
  fill->replies.resize(commands.size());
  fill->left = commands.size() + 1;
  const auto finish = [this, fill] {
    if (--fill->left > 0 || fill->failed) return;
    if (fill->refused) std::fill(fill->replies.begin(), fill->replies.end(), "-ERR no lifetime");
    const std::vector<std::string_view> replies(fill->replies.begin(), fill->replies.end());
    home_.on_read(fill->id, fill->ttl_ms, replies, now_ns());
  };
  // An answer that is late or lost ends the connection, so that the home hears on_lost and no fill
  // hangs.
  const auto broken = [this](const Request& request) {
    const bool bad = request.reply.empty() || request.reply.starts_with("-CLUSTERDOWN") ||
                     request.reply.starts_with("-ERR shard");
    if (bad && tracking_->up()) tracking_->reset("a fill's read was not answered");
    return bad;
  };
  ask_tracking(
      encode({"PTTL", key}),
      [this, fill, finish, broken](Request& request) {
        fill->failed |= broken(request);
        home_.on_read_begun(fill->id);
        // Without its lifetime (-BUSY) the value is of no use.
        fill->refused |= request.reply.starts_with('-');
        if (request.reply.starts_with(':'))
          std::from_chars(request.reply.data() + 1, request.reply.data() + request.reply.size(),
                          fill->ttl_ms);
        finish();
      },
      true);
  for (size_t i = 0; i < commands.size(); ++i) {
    const std::string wire = commands[i].empty() ? encode({"GET", key}) : commands[i];
    ask_tracking(
        wire,
        [fill, finish, broken, i](Request& request) {
          fill->failed |= broken(request);
          fill->replies[i] = std::move(request.reply);
          finish();
        },
        true);
  }
}

void Shard::ping(uint64_t ping_id) {
  ask_tracking(
      encode({"PING"}),
      [this, ping_id](Request& request) {
        if (request.reply == "+PONG\r\n") home_.on_pong(ping_id, now_ns());
      },
      false);
}

}  // namespace ballast::cache
