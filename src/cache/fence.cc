// SPDX-License-Identifier: Apache-2.0
// Shard's fence: whoever holds the unkilled, named connections to a shard is its home. Name, list,
// step down before a later home, end every former connection, and only then take writes
// (docs/design/coherence.md).
#include <charconv>

#include "base/log.h"
#include "cache/shard.h"
#include "proto/resp_value.h"
#include "proto/resp_write.h"

namespace ballast::cache {
namespace {

// The value of `field` in one line of CLIENT LIST.
std::string_view field_of(std::string_view line, std::string_view field) {
  while (!line.empty()) {
    const size_t space = line.find(' ');
    const std::string_view word = line.substr(0, space);
    if (word.starts_with(field)) return word.substr(field.size());
    if (space == std::string_view::npos) break;
    line.remove_prefix(space + 1);
  }
  return {};
}

template <typename T>
bool number_of(std::string_view text, T& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

}  // namespace

void Shard::on_link_up(Link& link) {
  own_ids_.insert(link.client_id());
  if (!up()) return;
  if (!options_.home) return;
  start_fence();
}

void Shard::on_link_down(Link& /*link*/, const std::string& /*cause*/) {
  ++stats_.disconnects;
  if (!options_.home) return;
  ++fence_round_;
  fenced_ = false;
  home_.on_lost(now_ns());
}

void Shard::start_fence() {
  const uint64_t round = ++fence_round_;
  stepped_down_.clear();
  Request* request = pool_.take();
  pool_.hold(request);
  request->proto = 2;
  request->deadline = now_ns() + options_.timeout;
  request->done = [this, round](Request& answered) {
    if (round != fence_round_) return;
    const auto list = proto::parse_value(answered.reply);
    if (!list || answered.reply.starts_with('-')) {
      log_error("shard {}: CLIENT LIST failed, so it cannot be fenced: {}", options_.text,
                answered.reply.substr(0, answered.reply.find('\r')));
      next_fence_ = now_ns() + kSecond;
      return;
    }
    on_client_list(list->string);
  };
  links_[0]->send("*2\r\n$6\r\nCLIENT\r\n$4\r\nLIST\r\n", *request);
  pool_.release(request);
}

void Shard::on_client_list(std::string_view list) {
  std::vector<int64_t> former;
  while (!list.empty()) {
    const size_t end = list.find('\n');
    const std::string_view line = list.substr(0, end);
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
    const std::string_view name = field_of(line, "name=");
    if (!name.starts_with(options_.name_prefix)) continue;
    int64_t id = 0;
    uint64_t epoch = 0;
    if (!number_of(field_of(line, "id="), id)) continue;
    if (!number_of(name.substr(options_.name_prefix.size()), epoch)) continue;
    if (epoch > options_.coherence.epoch) {
      stepped_down_ = name;
      log_error("shard {}: stepping down, a later home is there: {}", options_.text, name);
      next_fence_ = now_ns() + kSecond;
      return;
    }
    if (epoch < options_.coherence.epoch || !own_ids_.contains(id)) former.push_back(id);
  }
  kills_left_ = former.size();
  if (kills_left_ == 0) return fence_stands();
  const uint64_t round = fence_round_;
  for (const int64_t id : former) {
    log_info("shard {}: ending connection {} of a former home", options_.text, id);
    Request* request = pool_.take();
    pool_.hold(request);
    request->proto = 2;
    request->deadline = now_ns() + options_.timeout;
    request->done = [this, round](Request& answered) {
      if (round != fence_round_) return;
      // :1 killed, :0 it was gone already; anything else leaves it in doubt.
      if (!answered.reply.starts_with(':')) {
        log_error("shard {}: CLIENT KILL failed, so it cannot be fenced: {}", options_.text,
                  answered.reply.substr(0, answered.reply.find('\r')));
        ++fence_round_;
        next_fence_ = now_ns() + kSecond;
        return;
      }
      if (--kills_left_ == 0) fence_stands();
    };
    std::string wire;
    const std::string text = std::to_string(id);
    const std::string_view args[] = {"CLIENT", "KILL", "ID", text};
    proto::append_command(wire, args);
    links_[0]->send(wire, *request);
    pool_.release(request);
  }
}

void Shard::end_guard_once_dead(Request& guard, int64_t client_id) {
  if (guard.guarded == nullptr) return;
  if (waiting_.contains(guard.token)) return end_guard(guard, now_ns());  // never left
  Request* kill = pool_.take();
  pool_.hold(kill);
  pool_.hold(&guard);
  kill->proto = 2;
  kill->deadline = now_ns() + options_.timeout;
  kill->done = [this, guard = &guard](Request& answered) {
    if (answered.reply.starts_with(':')) {
      end_guard(*guard, now_ns());
      pool_.release(guard);
    } else {
      orphans_.push_back(guard);  // the next fence ends that connection
    }
  };
  const std::string id = std::to_string(client_id);
  const std::string_view args[] = {"CLIENT", "KILL", "ID", id};
  std::string wire;
  proto::append_command(wire, args);
  links_[0]->send(wire, *kill);
  pool_.release(kill);
}

void Shard::fence_stands() {
  const Nanos now = now_ns();
  fenced_ = true;
  // Another home may have come and gone since this process last held the fence.
  home_.on_fenced(true, now);
  for (Request* orphan : std::exchange(orphans_, {})) {
    end_write(*orphan, now);
    pool_.release(orphan);
  }
}

}  // namespace ballast::cache
