// SPDX-License-Identifier: Apache-2.0
#include "trace/request_counter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace ballast::trace {

// Made from redis_commands.resp when the build is configured.
extern const unsigned char kRedisCommands[];
extern const size_t kRedisCommandsSize;

namespace {

constexpr size_t kMostUnknownNames = 16;
constexpr size_t kMostNameBytes = 32;

bool is_kept(const proto::CommandInfo& info, const std::vector<proto::KeyPosition>& positions) {
  return info.repeatable() && positions.size() == 1 && positions[0].index == 1;
}

}  // namespace

const proto::CommandTable& built_in_commands() {
  static const proto::CommandTable table = [] {
    auto read = proto::CommandTable::from_reply(
        std::string_view(reinterpret_cast<const char*>(kRedisCommands), kRedisCommandsSize));
    BALLAST_CHECK(read.has_value());
    return std::move(*read);
  }();
  return table;
}

void RequestCounter::command(std::span<const std::string_view> args, Nanos time, bool cut) {
  if (args.empty()) return;
  const proto::CommandInfo* info = table_.find(args);
  if (info == nullptr) return note_unknown(args[0]);
  if (!cut && !info->arity_fits(args.size())) {
    ++refused_;
    return;
  }
  ++commands_;
  if (!info->keys(args, positions_)) {
    ++keys_hidden_;
    return;
  }
  const bool kept = is_kept(*info, positions_);
  for (const proto::KeyPosition& position : positions_) {
    counts_.add(args[position.index], position.written);
    ++(position.written ? writes_ : kept ? kept_reads_ : other_reads_);
  }
  if (!positions_.empty() && time > 0) note_time(time, positions_.size());
}

void RequestCounter::note_unknown(std::string_view name) {
  ++unknown_;
  std::string shown(name.substr(0, kMostNameBytes));
  for (char& byte : shown) {
    if (byte <= ' ' || byte > '~') byte = '?';
  }
  const auto found = unknown_names_.find(shown);
  if (found != unknown_names_.end()) {
    ++found->second;
  } else if (unknown_names_.size() < kMostUnknownNames) {
    unknown_names_.emplace(std::move(shown), 1);
  }
}

// Requests that come a little out of order count in the second that is being counted.
void RequestCounter::note_time(Nanos time, uint64_t requests) {
  if (first_ == 0 || time < first_) first_ = time;
  last_ = std::max(last_, time);
  const Nanos second = time / kSecond;
  if (second > second_) {
    second_ = second;
    in_second_ = 0;
  }
  in_second_ += requests;
  busiest_ = std::max(busiest_, in_second_);
}

void RequestCounter::finish(Workload& workload) const {
  counts_.finish(workload);
  workload.kinds_known = commands_ > 0;
  workload.kept_reads = kept_reads_;
  workload.other_reads = other_reads_;
  workload.writes = writes_;
  workload.times_known = last_ > first_;
  workload.seconds = static_cast<double>(last_ - first_) / static_cast<double>(kSecond);
  workload.busiest_second = static_cast<double>(busiest_);
  workload.first = first_;
  if (unknown_ > 0) {
    std::string names;
    for (const auto& [name, count] : unknown_names_)
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", name, count);
    workload.notes.push_back(fmt::format(
        "{} commands are not in the table and were left out: {}; give the server's own table with "
        "--commands",
        unknown_, names));
  }
  if (refused_ > 0)
    workload.notes.push_back(fmt::format(
        "{} commands have so many arguments as a server refuses, and were left out", refused_));
  if (keys_hidden_ > 0)
    workload.notes.push_back(
        fmt::format("{} commands do not show from outside which keys they use, and were left out",
                    keys_hidden_));
}

}  // namespace ballast::trace
