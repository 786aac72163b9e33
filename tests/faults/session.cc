// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <fmt/format.h>

#include <charconv>
#include <thread>

namespace ballast::faults {

std::string encode_value(Value value, std::string_view key) {
  return fmt::format("v:{}:{}", value, key);
}

std::optional<Value> decode_value(std::string_view text, std::string_view key) {
  if (!text.starts_with("v:") || !text.ends_with(key)) return std::nullopt;
  Value value = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), value);
  const size_t rest = static_cast<size_t>(text.data() + text.size() - end);
  if (error != std::errc() || rest != key.size() + 1 || *end != ':') return std::nullopt;
  return value;
}

Session::Session(const WorkloadOptions& options, int id, std::vector<std::string> watched,
                 Progress& progress)
    : options_(options),
      id_(id),
      watched_(std::move(watched)),
      progress_(progress),
      random_(options.seed * 1000 + static_cast<uint64_t>(id)),
      endpoint_(static_cast<size_t>(id) % options.endpoints.size()),
      next_value_((static_cast<Value>(id) + 1) << 40) {}

void Session::run() {
  while (!progress_.stop) {
    if (!ensure_connected()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    batch_.clear();
    request_.clear();
    fill_batch();
    exchange();
  }
}

bool Session::ensure_connected() {
  if (client_) return true;
  auto connected = BlockingClient::connect(options_.endpoints[endpoint_], options_.timeout_ns);
  if (!connected) {
    endpoint_ = (endpoint_ + 1) % options_.endpoints.size();
    return false;
  }
  client_.emplace(std::move(*connected));
  return true;
}

void Session::fill_batch() {
  // Mostly single commands: they give the tightest intervals.
  const uint64_t size = random_.below(4) == 0 ? 1 + random_.below(8) : 1;
  while (batch_.size() < size) {
    const int dice = static_cast<int>(random_.below(100));
    if (dice < options_.write_percent) {
      const uint64_t hot = pick_written_key();
      add_write(pick_key(hot), random_.below(5) == 0 ? pick_ttl(hot) : 0);
    } else if (dice < options_.write_percent + options_.delete_percent) {
      add_delete(pick_key(pick_written_key()));
    } else if (dice >= 97) {
      add_multi_read();
    } else if (dice >= 92) {
      add_own_pair();
    } else {
      const uint64_t kind = random_.below(10);
      if (kind == 0) {
        add_read(
            own_key(static_cast<int>(random_.below(static_cast<uint64_t>(options_.sessions)))));
      } else if (kind == 1 && !watched_.empty()) {
        add_read(watched_[random_.below(watched_.size())]);
      } else {
        add_read(pick_key());
      }
    }
  }
}

std::string Session::own_key(int session) const {
  return fmt::format("{}own:{}:{}", options_.prefix, session,
                     progress_.own_generations[static_cast<size_t>(session)].load());
}

// The first hot key takes half of the writes, the next a quarter, and so on.
uint64_t Session::pick_written_key() {
  uint64_t hot = 0;
  while (hot + 1 < static_cast<uint64_t>(options_.hot_keys) && random_.below(2) == 0) ++hot;
  return hot;
}

// What lives for less than a heartbeat gets no copy: most keys live longer.
Nanos Session::pick_ttl(uint64_t hot) {
  return static_cast<Nanos>(hot == 0 ? 10 + random_.below(300) : 400 + random_.below(1200)) *
         kMillisecond;
}

std::string Session::pick_key() {
  return pick_key(random_.below(static_cast<uint64_t>(options_.hot_keys)));
}

std::string Session::pick_key(uint64_t hot) {
  if (random_.below(100) < 80) return fmt::format("{}hot:{}", options_.prefix, hot);
  return fmt::format("{}cold:{}", options_.prefix,
                     random_.below(static_cast<uint64_t>(options_.cold_keys)));
}

void Session::push(Sent sent, const std::vector<std::string_view>& arguments) {
  sent.operation.session = id_;
  append_command(request_, arguments);
  batch_.push_back(std::move(sent));
}

void Session::add_read(std::string key) {
  Sent sent;
  if (key == own_key(id_)) sent.own_before = own_value_;
  sent.keys = {std::move(key)};
  const std::string name = sent.keys.front();
  push(std::move(sent), {"GET", name});
}

void Session::add_multi_read() {
  Sent sent;
  for (uint64_t n = 2 + random_.below(3); n > 0; --n) sent.keys.push_back(pick_key());
  const std::vector<std::string> keys = sent.keys;
  std::vector<std::string_view> arguments = {"MGET"};
  arguments.insert(arguments.end(), keys.begin(), keys.end());
  push(std::move(sent), arguments);
}

void Session::add_write(const std::string& key, Nanos ttl_ns) {
  Sent sent;
  sent.operation.kind = OpKind::kWrite;
  sent.operation.value = ++next_value_;
  sent.operation.ttl_ns = ttl_ns;
  sent.keys = {key};
  const std::string value = encode_value(next_value_, key);
  const std::string ttl = fmt::format("{}", ttl_ns / kMillisecond);
  if (ttl_ns > 0) {
    push(std::move(sent), {"SET", key, value, "PX", ttl});
  } else {
    push(std::move(sent), {"SET", key, value});
  }
}

void Session::add_delete(const std::string& key) {
  Sent sent;
  sent.operation.kind = OpKind::kDelete;
  sent.keys = {key};
  push(std::move(sent), {"DEL", key});
}

void Session::add_own_pair() {
  const std::string key = own_key(id_);
  const bool write_first = random_.below(2) == 0;
  if (!write_first) add_read(key);
  if (random_.below(10) == 0) {
    add_delete(key);
    own_value_ = kNil;
  } else {
    add_write(key, 0);
    own_value_ = next_value_;
  }
  if (write_first) add_read(key);
}

void Session::exchange() {
  const Nanos invoke_ns = now_ns();
  for (Sent& sent : batch_) sent.operation.invoke_ns = invoke_ns;
  if (!client_->send(request_)) return lose(0);
  for (size_t i = 0; i < batch_.size(); ++i) {
    auto reply = client_->receive();
    if (!reply) return lose(i);
    take_reply(batch_[i], *reply, now_ns());
  }
  progress_.operations += batch_.size();
}

// The connection is gone: what was sent from command `from` on may or may not take effect.
void Session::lose(size_t from) {
  client_.reset();
  ++progress_.reconnects;
  endpoint_ = (endpoint_ + 1) % options_.endpoints.size();
  for (size_t i = from; i < batch_.size(); ++i) take_reply(batch_[i], Reply{'-', {}, {}}, kNever);
  abandon_own_key();
}

void Session::abandon_own_key() {
  ++progress_.own_generations[static_cast<size_t>(id_)];
  own_value_ = kNil;
}

void Session::complain(std::string sentence) {
  if (complaints_.size() < 20) complaints_.push_back(std::move(sentence));
}

void Session::take_reply(Sent& sent, const Reply& reply, Nanos response_ns) {
  const bool is_error = reply.type == '-';
  if (is_error && response_ns != kNever) ++progress_.errors;
  if (sent.operation.kind != OpKind::kRead) {
    const char wanted = sent.operation.kind == OpKind::kWrite ? '+' : ':';
    if (!is_error && reply.type != wanted) {
      complain(fmt::format("session {}: a write of {} was answered by '{}{}'", id_,
                           sent.keys.front(), reply.type, reply.text));
    }
    sent.operation.response_ns = is_error ? kNever : response_ns;
    if (is_error) ++progress_.unknown;
    if (is_error && sent.keys.front() == own_key(id_)) abandon_own_key();
    records_.push_back({sent.keys.front(), sent.operation});
    return;
  }
  if (is_error) return;
  if (sent.keys.size() == 1) {
    take_value(sent, sent.keys.front(), reply, response_ns);
    return;
  }
  if (reply.type != '*' || reply.elements.size() != sent.keys.size()) {
    complain(fmt::format("session {}: an MGET of {} keys was answered by '{}' with {} elements",
                         id_, sent.keys.size(), reply.type, reply.elements.size()));
    return;
  }
  for (size_t i = 0; i < sent.keys.size(); ++i) {
    take_value(sent, sent.keys[i], reply.elements[i], response_ns);
  }
}

void Session::take_value(const Sent& sent, const std::string& key, const Reply& reply,
                         Nanos response_ns) {
  if (reply.type == '-') return;
  Operation operation = sent.operation;
  operation.response_ns = response_ns;
  operation.value = kNil;
  if (reply.type != '_') {
    const auto value = decode_value(reply.text, key);
    if (reply.type != '$' || !value) {
      complain(fmt::format("session {}: a read of {} was answered by '{}{}'", id_, key, reply.type,
                           reply.text.substr(0, 100)));
      return;
    }
    operation.value = *value;
  }
  records_.push_back({key, operation});
  if (!sent.own_before || key != own_key(id_) || operation.value == *sent.own_before) return;
  if (operation.value == kNil && options_.has_flushes) return;
  complain(
      fmt::format("session {}: a read of {}, which it alone writes, gave {} where the order "
                  "of its commands gives {}",
                  id_, key, operation.value, *sent.own_before));
}

}  // namespace ballast::faults
