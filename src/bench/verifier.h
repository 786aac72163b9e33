// SPDX-License-Identifier: Apache-2.0
// Knows for every key which of its values a read may return. Each key has one writing connection,
// so that the order of its values is known: their numbers.
//
// A read may return no value older than the newest that was acknowledged, or seen by a finished
// read, when the read began (I1), on the key's writing connection exactly the last one acknowledged
// before it in the connection's order (I3), and always a value of its own key.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ballast::bench {

enum class Finding : uint8_t {
  kGood,
  kStale,       // older than what the read had to see
  kLost,        // no value although one was acknowledged
  kForeign,     // another key's value, or none that was ever written
  kOutOfOrder,  // on the writer's connection: not what the order of commands asks for
};
inline constexpr size_t kFindings = 5;

// What was known when a read began.
struct ReadMark {
  uint32_t floor = 0;   // the value's number is at least this; 0 = there may be no value
  uint32_t issued = 0;  // the last number handed out
};

class Verifier {
 public:
  Verifier(uint32_t keys, uint32_t run) : run_(run), keys_(keys) {}

  uint32_t begin_write(uint32_t key) { return ++keys_[key].issued; }
  void acknowledge(uint32_t key, uint32_t number);
  // The write may still take effect at any time: nothing is asked of reads of the key any more.
  void abandon(uint32_t key) { keys_[key].unsure = true; }

  ReadMark begin_read(uint32_t key) const {
    return {std::max(keys_[key].acknowledged, keys_[key].seen), keys_[key].issued};
  }
  // `value` is the reply, nothing for null; `own` = on the key's writing connection.
  struct Read {
    uint32_t key = 0;
    uint64_t key_hash = 0;
    ReadMark mark = {};
    bool own = false;
    std::optional<std::string_view> value = {};
  };
  Finding check(const Read& read);

  uint64_t count(Finding finding) const { return counts_[static_cast<size_t>(finding)]; }
  uint64_t violations() const;
  uint64_t unsure_keys() const;

 private:
  struct Key {
    uint32_t issued = 0;
    uint32_t acknowledged = 0;
    uint32_t seen = 0;
    bool unsure = false;
  };
  Finding judge(const Read& read);
  Finding judge_number(const Read& read, uint32_t number);

  uint32_t run_;
  std::vector<Key> keys_;
  std::array<uint64_t, kFindings> counts_{};
};

}  // namespace ballast::bench
