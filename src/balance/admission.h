// SPDX-License-Identifier: Apache-2.0
// A cache node's decision which keys of its partition to hold: the hottest that fit, a newcomer
// only when clearly hotter than the key it displaces. Held keys are counted exactly, all others in
// a sketch; both decay, so that yesterday's hot keys leave.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "balance/sketch.h"
#include "base/clock.h"
#include "base/random.h"

namespace ballast::balance {

struct AdmissionOptions {
  size_t objects = 0;  // most keys held; 0: bounded by bytes only
  size_t bytes = 0;    // most bytes held; 0: bounded by objects only
  // Counts halve when this has passed and enough has been counted to tell the coldest held key
  // from its neighbours (`weight_per_object` for each held key, 64 at least), at the latest after
  // the maximum.
  Nanos half_life = 500 * kMillisecond;
  Nanos max_half_life = 300 * kSecond;
  uint32_t weight_per_object = 128;
  double factor = 1.25;  // by which a newcomer must exceed its victim, ...
  double noise = 1.0;    // ... after taking off so many standard deviations of its sampled count
  uint64_t seed = 1;
};

class Admission {
 public:
  struct Decision {
    bool admit = false;
    std::optional<uint64_t> victim;  // only with admit
  };

  explicit Admission(AdmissionOptions options);

  // One request for the key, standing for `weight` of them (s for a read sampled 1 in s). On admit
  // the key counts as held with no bytes and the victim as no longer held: the caller drops the
  // victim, fetches the key, then calls held(), or dropped() if it cannot have it.
  Decision observe(uint64_t key, uint32_t weight);
  // The key is held with this many bytes: after an admission, when its size changes, or on the
  // caller's own account.
  void held(uint64_t key, size_t bytes);
  // The key is not held any more; nothing if it was not.
  void dropped(uint64_t key);
  // A key to drop without a newcomer, because the bytes are over their bound or because it is not
  // hot any more; it counts as dropped. Call until nullopt, after held() and after tick().
  std::optional<uint64_t> expel();
  // Decay; every few milliseconds to hundreds of them. O(1) but for one sweep of the sketch each
  // half-life.
  void tick(Nanos now);

  // Held keys and their recent counts (requests in about two half-lives), hottest first.
  std::vector<std::pair<uint64_t, uint64_t>> hottest(size_t n) const;
  bool holds(uint64_t key) const { return index_.contains(key); }
  size_t objects() const { return entries_.size(); }
  size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    uint64_t key = 0;
    size_t bytes = 0;
    double count = 0;  // as of `epoch`
    uint64_t epoch = 0;
  };
  struct Coldest {
    size_t at = 0;
    double count = 0;
  };

  double count_of(const Entry& entry) const;
  bool full() const;
  void insert(uint64_t key, size_t bytes, double count);
  void remove(size_t at);
  // The coldest held key of a pool that samples refresh: all but exact, at constant cost.
  std::optional<Coldest> coldest();

  AdmissionOptions options_;
  Random random_;
  Sketch sketch_;
  std::vector<Entry> entries_;
  std::unordered_map<uint64_t, size_t> index_;
  size_t bytes_ = 0;
  uint64_t epoch_ = 0;
  double weight_ = 0;  // counted since the last halving, a sample's weight as its square root
  Nanos last_halving_ = 0;
  double floor_ = 0;  // count that a victim had lately: newcomers below it need no search
  static constexpr size_t kPool = 16;
  static constexpr size_t kSamples = 8;
  std::array<uint64_t, kPool> pool_{};  // keys
  size_t pooled_ = 0;
  size_t cursor_ = 0;  // of the search for keys gone cold
  size_t to_scan_ = 0;
};

}  // namespace ballast::balance
