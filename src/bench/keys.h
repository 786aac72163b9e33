// SPDX-License-Identifier: Apache-2.0
// The keys of a run: ranks from 0, the hottest, and how often each is drawn.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "balance/zipf.h"
#include "base/random.h"
#include "base/result.h"
#include "bench/settings.h"

namespace ballast::bench {

// Classes by rank: the ten hottest, the other keys of the hottest hundredth, the rest.
enum class KeyClass : uint8_t { kTop, kHot, kRest };
inline constexpr size_t kKeyClasses = 3;
inline constexpr uint32_t kTopKeys = 10;

class Keys {
 public:
  // Reads the replayed file; an error names it.
  static Result<Keys> create(const Settings& settings);

  uint32_t size() const { return size_; }
  uint32_t draw(Random& random);  // a rank; replayed keys come in the file's order, over and over
  // Appends the key as a bulk string of RESP.
  void append_bulk(std::string& out, uint32_t rank) const;
  std::string text(uint32_t rank) const;
  uint64_t hash(uint32_t rank) const;
  KeyClass key_class(uint32_t rank) const {
    if (rank < kTopKeys) return KeyClass::kTop;
    return rank < size_ / 100 ? KeyClass::kHot : KeyClass::kRest;
  }

 private:
  explicit Keys(const Settings& settings);
  Result<> read_replay(const std::string& path);

  Spread spread_;
  uint32_t size_;
  double hot_reads_;
  uint32_t hot_size_;
  balance::Zipf zipf_;
  std::vector<std::string> replayed_;  // by rank
  std::vector<uint32_t> order_;        // ranks in the file's order
  size_t next_ = 0;
};

}  // namespace ballast::bench
