// SPDX-License-Identifier: Apache-2.0
// Long because the phases of a run and what connections send in them share one state.
#include "bench/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bench/connection.h"
#include "bench/keys.h"
#include "bench/pacer.h"
#include "bench/value.h"
#include "io/loop.h"
#include "io/socket.h"
#include "proto/resp_write.h"
#include "telemetry/progress.h"

namespace ballast::bench {
namespace {

constexpr Nanos kConnectTime = 10 * kSecond;
constexpr Nanos kDrainTime = 10 * kSecond;
constexpr Nanos kTick = kSecond / 4;
constexpr Nanos kLeastPace = 50 * kMicrosecond;  // between wakes of an open loop
constexpr Nanos kUnsentAge = kMillisecond;       // younger ones count as being sent
constexpr uint32_t kLoadDepth = 64;
constexpr size_t kMostWaitingWrites = 64;  // of one connection
// Then a connection that found only writes for others rests until one of its own comes.
constexpr int kMostDrawsInVain = 1000;
constexpr size_t kMostErrorTexts = 50;
constexpr size_t kErrorTextSize = 120;

enum class Phase { kConnect, kLoad, kWarm, kMeasure, kDrain };

// Writes drawn for another connection, waiting there for room. No allocation while running.
class WriteQueue {
 public:
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == kMostWaitingWrites; }
  void push(uint32_t key) { keys_[(head_ + count_++) % kMostWaitingWrites] = key; }
  uint32_t pop() {
    const uint32_t key = keys_[head_];
    head_ = (head_ + 1) % kMostWaitingWrites;
    --count_;
    return key;
  }

 private:
  std::array<uint32_t, kMostWaitingWrites> keys_{};
  size_t head_ = 0;
  size_t count_ = 0;
};

struct Draw {
  uint32_t key;
  bool write;
};

class Session final : public Director {
 public:
  Session(const Settings& settings, Keys keys, std::unique_ptr<io::Loop> loop);

  Result<> connect();
  Result<Results> run();

  void on_open(Connection& connection) override;
  void on_reply(Connection& connection, const Request& request, const Reply& reply,
                Nanos now) override;
  void on_room(Connection& connection, Nanos now) override;
  void on_lost(Connection& connection, const Request* request, const std::string& cause) override;

 private:
  void abort(std::string why);
  void enter(Phase phase);
  void enter_next();
  void start_all();
  void tick();
  void finish_if_drained();

  void fill_load(Connection& connection, Nanos now);
  void fill_closed(Connection& connection, Nanos now);
  void dispatch();
  bool send_due(Nanos due);
  Connection* with_room();

  // The one connection that writes the key, where values are verified.
  uint32_t owner_of(uint32_t key) const { return writers_[key % writers_.size()]; }
  // The one to write a key that `connection` drew.
  uint32_t writer_for(const Connection& connection, uint32_t key) const {
    return verifier_ || !writes_[connection.index()] ? owner_of(key) : connection.index();
  }
  bool hand_over(uint32_t key);
  Draw draw();
  void send_read(Connection& connection, uint32_t key, Nanos begun);
  void send_write(Connection& connection, uint32_t key, Nanos begun);
  void verify_reply(const Connection& connection, const Request& request, const Reply& reply);
  void record(const Request& request, Nanos now);
  void count_error(std::string_view text);

  const Settings& settings_;
  Keys keys_;
  std::unique_ptr<io::Loop> loop_;
  std::unique_ptr<Pacer> pacer_;
  Random random_;
  uint32_t run_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<uint32_t> writers_;      // indexes of the connections that may write
  std::vector<bool> writes_;           // by connection: is among them
  std::vector<WriteQueue> waiting_;    // by connection
  std::vector<uint32_t> load_cursor_;  // by connection: the next key to load
  std::unique_ptr<Verifier> verifier_;
  Results results_;
  telemetry::Progress progress_;
  std::optional<Error> failure_;

  Phase phase_ = Phase::kConnect;
  Nanos phase_begun_ = 0;
  Nanos measure_begun_ = 0;
  uint32_t open_ = 0;
  std::string last_cause_;
  uint64_t answered_ = 0;  // good replies of the whole run, for progress
  uint64_t shown_ = 0;
  Nanos shown_at_ = 0;
  // Open loop: request number due_ is due at paced_from_ + due_ / rate.
  Nanos paced_from_ = 0;
  uint64_t due_ = 0;
  uint64_t armed_for_ = 0;  // the request whose time the pacer waits for
  size_t next_connection_ = 0;
};

Session::Session(const Settings& settings, Keys keys, std::unique_ptr<io::Loop> loop)
    : settings_(settings),
      keys_(std::move(keys)),
      loop_(std::move(loop)),
      random_(settings.seed),
      run_(static_cast<uint32_t>(system_seed())),
      writes_(settings.connections),
      waiting_(settings.connections),
      load_cursor_(settings.connections) {
  if (settings.verify) verifier_ = std::make_unique<Verifier>(keys_.size(), run_);
  results_.verified = settings.verify;
}

// What a connection sends first, and how many replies that has.
void plan_setup(const Settings& settings, Connection::Plan& plan) {
  std::vector<std::string_view> words;
  if (settings.resp3) {
    words = {"HELLO", "3"};
    if (!settings.password.empty()) words.insert(words.end(), {"AUTH", "default"});
  } else if (!settings.password.empty()) {
    words = {"AUTH"};
  }
  if (words.empty()) return;
  if (!settings.password.empty()) words.push_back(settings.password);
  proto::append_command(plan.setup, words);
  plan.setup_replies = 1;
}

Result<> Session::connect() {
  std::vector<io::Address> addresses;
  for (const model::Endpoint& target : settings_.targets) {
    const auto address = io::resolve(target.host, target.port);
    if (!address) return Unexpected(address.error());
    addresses.push_back(*address);
  }
  const size_t writing = settings_.write_targets > 0 ? settings_.write_targets : addresses.size();
  for (uint32_t i = 0; i < settings_.connections; ++i) {
    Connection::Plan plan{.index = i,
                          .depth = std::max(settings_.load ? kLoadDepth : 0, settings_.pipeline),
                          .address = addresses[i % addresses.size()]};
    plan_setup(settings_, plan);
    if (i % addresses.size() < writing) {
      load_cursor_[i] = static_cast<uint32_t>(writers_.size());
      writers_.push_back(i);
      writes_[i] = true;
    }
    connections_.push_back(std::make_unique<Connection>(*loop_, *this, std::move(plan)));
  }
  if (settings_.rate > 0) {
    auto pacer = Pacer::create(*loop_, [this] { dispatch(); });
    if (!pacer) return Unexpected(pacer.error());
    pacer_ = std::move(*pacer);
  }
  return {};
}

Result<Results> Session::run() {
  phase_begun_ = shown_at_ = now_ns();
  for (const auto& connection : connections_) connection->open();
  loop_->after(kTick, [this] { tick(); });
  loop_->run();
  progress_.finish();
  for (const auto& connection : connections_) connection->close();
  if (failure_) return Unexpected(*failure_);
  if (verifier_) {
    for (size_t i = 0; i < kFindings; ++i)
      results_.findings[i] = verifier_->count(static_cast<Finding>(i));
    results_.unsure_keys = verifier_->unsure_keys();
  }
  return std::move(results_);
}

void Session::abort(std::string why) {
  if (!failure_) failure_ = Error{ErrorCode::kUnavailable, std::move(why), true, 0};
  loop_->stop();
}

void Session::on_open(Connection& connection) {
  ++open_;
  if (phase_ != Phase::kConnect) return on_room(connection, now_ns());
  if (open_ == settings_.connections) enter_next();
}

void Session::enter_next() {
  switch (phase_) {
    case Phase::kConnect:
      if (settings_.load) return enter(Phase::kLoad);
      [[fallthrough]];
    case Phase::kLoad:
      if (settings_.seconds <= 0) return loop_->stop();
      for (const auto& connection : connections_) connection->set_depth(settings_.pipeline);
      if (settings_.warmup_seconds > 0) return enter(Phase::kWarm);
      [[fallthrough]];
    case Phase::kWarm:
      return enter(Phase::kMeasure);
    case Phase::kMeasure:
      return enter(Phase::kDrain);
    case Phase::kDrain:
      return loop_->stop();
  }
}

void Session::enter(Phase phase) {
  const Phase before = phase_;
  phase_ = phase;
  phase_begun_ = now_ns();
  const auto after = [this](double seconds) {
    loop_->after(static_cast<Nanos>(seconds * static_cast<double>(kSecond)),
                 [this] { enter_next(); });
  };
  switch (phase) {
    case Phase::kWarm:
      after(settings_.warmup_seconds);
      break;
    case Phase::kMeasure:
      measure_begun_ = phase_begun_;
      results_.per_second.assign(static_cast<size_t>(std::ceil(settings_.seconds)), 0);
      after(settings_.seconds);
      break;
    case Phase::kDrain:
      results_.seconds = static_cast<double>(phase_begun_ - measure_begun_) / kSecond;
      if (settings_.rate > 0) {
        const Nanos until_ns = phase_begun_ - paced_from_ - kUnsentAge;
        const double until = static_cast<double>(std::max<Nanos>(until_ns, 0)) / kSecond;
        const auto total = static_cast<uint64_t>(until * settings_.rate);
        results_.unsent = total > due_ ? total - due_ : 0;
      }
      loop_->after(kDrainTime, [this] { loop_->stop(); });
      return finish_if_drained();
    case Phase::kConnect:
    case Phase::kLoad:
      break;
  }
  if (before == Phase::kConnect || before == Phase::kLoad) start_all();
}

// Connections send from now on; later each reply makes room for more.
void Session::start_all() {
  paced_from_ = now_ns();
  if (settings_.rate > 0 && phase_ != Phase::kLoad) return dispatch();
  for (const auto& connection : connections_) on_room(*connection, paced_from_);
}

void Session::tick() {
  loop_->after(kTick, [this] { tick(); });
  const Nanos now = now_ns();
  if (phase_ == Phase::kConnect) {
    if (now - phase_begun_ > kConnectTime) {
      abort(fmt::format("{} of {} connections after {} s{}{}", open_, settings_.connections,
                        kConnectTime / kSecond, last_cause_.empty() ? "" : ": ", last_cause_));
    }
    return;
  }
  if (phase_ == Phase::kDrain) return finish_if_drained();
  const double rate = static_cast<double>(answered_ - shown_) * kSecond /
                      static_cast<double>(std::max<Nanos>(now - shown_at_, 1));
  shown_ = answered_;
  shown_at_ = now;
  const double done = static_cast<double>(now - phase_begun_) / kSecond;
  uint64_t errors = 0;
  for (const auto& [text, count] : results_.error_texts) errors += count;
  std::string line;
  if (phase_ == Phase::kLoad) {
    line = fmt::format("loading: {} of {} keys", results_.loaded, keys_.size());
  } else {
    line = phase_ == Phase::kWarm
               ? fmt::format("warm-up {:.0f} of {:g} s", done, settings_.warmup_seconds)
               : fmt::format("{:.0f} of {:g} s", done, settings_.seconds);
  }
  line += fmt::format(": {:.0f} requests/s, {} errors", rate, errors);
  if (verifier_) line += fmt::format(", {} violations", verifier_->violations());
  progress_.report(now, line);
}

void Session::finish_if_drained() {
  for (const auto& connection : connections_) {
    if (connection->in_flight() > 0) return;
  }
  loop_->stop();
}

void Session::on_room(Connection& connection, Nanos now) {
  switch (phase_) {
    case Phase::kConnect:
      return;
    case Phase::kLoad:
      return fill_load(connection, now);
    case Phase::kWarm:
    case Phase::kMeasure:
      return settings_.rate > 0 ? dispatch() : fill_closed(connection, now);
    case Phase::kDrain:
      if (connection.in_flight() == 0) finish_if_drained();
      return;
  }
}

void Session::fill_load(Connection& connection, Nanos now) {
  uint32_t& next = load_cursor_[connection.index()];
  while (next < keys_.size() && owner_of(next) == connection.index() && connection.has_room()) {
    send_write(connection, next, now);
    next += static_cast<uint32_t>(writers_.size());
  }
}

Draw Session::draw() {
  const uint32_t key = keys_.draw(random_);
  return {key, settings_.writes > 0 && random_.unit() < settings_.writes};
}

// Gives a write to the connection that may do it; false when too many wait there already.
bool Session::hand_over(uint32_t key) {
  const uint32_t writer = owner_of(key);
  if (waiting_[writer].full()) {
    ++results_.redrawn;
    return false;
  }
  waiting_[writer].push(key);
  return true;
}

void Session::fill_closed(Connection& connection, Nanos now) {
  WriteQueue& waiting = waiting_[connection.index()];
  for (int in_vain = 0; in_vain < kMostDrawsInVain && connection.has_room();) {
    if (!waiting.empty()) {
      send_write(connection, waiting.pop(), now);
      continue;
    }
    const Draw drawn = draw();
    if (!drawn.write) {
      send_read(connection, drawn.key, now);
    } else if (writer_for(connection, drawn.key) == connection.index()) {
      send_write(connection, drawn.key, now);
    } else if (hand_over(drawn.key)) {
      // An idle writer would never look by itself.
      Connection& writer = *connections_[owner_of(drawn.key)];
      if (writer.has_room()) send_write(writer, waiting_[writer.index()].pop(), now);
    } else {
      ++in_vain;
    }
  }
}

Connection* Session::with_room() {
  for (size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = *connections_[next_connection_];
    next_connection_ = next_connection_ + 1 == connections_.size() ? 0 : next_connection_ + 1;
    if (connection.has_room()) return &connection;
  }
  return nullptr;
}

bool Session::send_due(Nanos due) {
  Connection* connection = with_room();
  if (connection == nullptr) return false;
  const Draw drawn = draw();
  if (!drawn.write) {
    send_read(*connection, drawn.key, due);
    return true;
  }
  Connection& writer = *connections_[writer_for(*connection, drawn.key)];
  if (writer.has_room()) {
    send_write(writer, drawn.key, due);
  } else {
    // Its place in time goes to a read: a write that waits would hold back what is due after it.
    ++results_.redrawn;
    send_read(*connection, drawn.key, due);
  }
  return true;
}

void Session::dispatch() {
  if (phase_ != Phase::kWarm && phase_ != Phase::kMeasure) return;
  const double step = static_cast<double>(kSecond) / settings_.rate;
  const Nanos now = now_ns();
  Nanos due = 0;
  for (;;) {
    due = paced_from_ + static_cast<Nanos>(static_cast<double>(due_) * step);
    if (due > now) break;
    if (!send_due(due)) return;  // the next reply makes room
    ++due_;
  }
  if (armed_for_ == due_) return;
  armed_for_ = due_;
  pacer_->wake_at(std::max(due, now + kLeastPace));
}

void Session::send_read(Connection& connection, uint32_t key, Nanos begun) {
  Request request{.begun = begun, .key = key, .op = Op::kRead};
  if (verifier_) request.mark = verifier_->begin_read(key);
  std::string& out = connection.begin(request);
  out += "*2\r\n$3\r\nGET\r\n";
  keys_.append_bulk(out, key);
}

void Session::send_write(Connection& connection, uint32_t key, Nanos begun) {
  Request request{.begun = begun, .key = key, .op = Op::kWrite};
  request.number = verifier_ ? verifier_->begin_write(key) : 1;
  const uint32_t size =
      settings_.value_min +
      static_cast<uint32_t>(random_.below(settings_.value_max - settings_.value_min + 1));
  std::string& out = connection.begin(request);
  out += "*3\r\n$3\r\nSET\r\n";
  keys_.append_bulk(out, key);
  proto::append_header(out, '$', size);
  append_value(out, {keys_.hash(key), run_, connection.index(), request.number, size});
  out += "\r\n";
}

void Session::on_reply(Connection& connection, const Request& request, const Reply& reply,
                       Nanos now) {
  const bool good =
      request.op == Op::kRead ? reply.type == '$' || reply.type == '_' : reply.type == '+';
  if (!good) {
    count_error(reply.type == '-' ? reply.text : "a reply of an unexpected type");
    if (phase_ == Phase::kLoad) abort("loading: " + results_.error_texts.begin()->first);
    return;
  }
  ++answered_;
  if (verifier_) verify_reply(connection, request, reply);
  if (phase_ == Phase::kMeasure) {
    record(request, now);
    if (reply.null) ++results_.misses;
  } else if (phase_ == Phase::kLoad && ++results_.loaded == keys_.size()) {
    results_.load_seconds = static_cast<double>(now - phase_begun_) / kSecond;
    enter_next();
  }
}

void Session::verify_reply(const Connection& connection, const Request& request,
                           const Reply& reply) {
  if (request.op == Op::kWrite) return verifier_->acknowledge(request.key, request.number);
  verifier_->check({.key = request.key,
                    .key_hash = keys_.hash(request.key),
                    .mark = request.mark,
                    .own = owner_of(request.key) == connection.index(),
                    .value = reply.null ? std::nullopt : std::optional(reply.text)});
}

void Session::record(const Request& request, Nanos now) {
  const Nanos latency = now - request.begun;
  ++results_.requests;
  results_.all.record(latency);
  (request.op == Op::kRead ? results_.reads : results_.writes).record(latency);
  results_.classes[static_cast<size_t>(keys_.key_class(request.key))].record(latency);
  const auto second = static_cast<size_t>(std::max<Nanos>(now - measure_begun_, 0) / kSecond);
  if (second < results_.per_second.size()) ++results_.per_second[second];
}

void Session::count_error(std::string_view text) {
  if (phase_ == Phase::kMeasure) {
    ++results_.requests;
    ++results_.errors;
  }
  std::string key(text.substr(0, kErrorTextSize));
  if (!results_.error_texts.contains(key) && results_.error_texts.size() >= kMostErrorTexts)
    key = "others";
  ++results_.error_texts[key];
}

void Session::on_lost(Connection& connection, const Request* request, const std::string& cause) {
  last_cause_ = cause;
  if (request != nullptr) {
    count_error(cause);
    if (verifier_ && request->op == Op::kWrite) verifier_->abandon(request->key);
    return;
  }
  (void)connection;
  if (phase_ == Phase::kConnect || phase_ == Phase::kLoad) return abort(cause);
  if (phase_ == Phase::kDrain) finish_if_drained();
}

}  // namespace

Result<Results> run_session(const Settings& settings) {
  auto keys = Keys::create(settings);
  if (!keys) return Unexpected(keys.error());
  auto loop = io::Loop::create();
  if (!loop) return Unexpected(loop.error());
  Session session(settings, std::move(*keys), std::move(*loop));
  if (const auto connected = session.connect(); !connected) return Unexpected(connected.error());
  return session.run();
}

}  // namespace ballast::bench
