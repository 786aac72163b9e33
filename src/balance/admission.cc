// SPDX-License-Identifier: Apache-2.0
#include "balance/admission.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace ballast::balance {
namespace {

// Below one request in a half-life: once in two half-lives is not hot.
constexpr double kCold = 0.5;
// Two observations within a half-life are the least evidence that a key is not a passing one.
constexpr double kEvidence = 1.5;
constexpr size_t kScanPerTick = 256;

size_t sketch_width(const AdmissionOptions& options) {
  // 16 counters a held key keep the colliding mass below the coldest held key's count.
  const size_t expected = options.objects != 0 ? options.objects : options.bytes / 1024;
  return std::clamp<size_t>(16 * expected, 16'384, 262'144);
}

}  // namespace

Admission::Admission(AdmissionOptions options)
    : options_(options), random_(options.seed), sketch_(sketch_width(options), options.seed) {
  BALLAST_CHECK(options.objects != 0 || options.bytes != 0);
  BALLAST_CHECK(options.half_life > 0 && options.factor >= 1);
}

double Admission::count_of(const Entry& entry) const {
  return std::ldexp(entry.count, -static_cast<int>(std::min<uint64_t>(epoch_ - entry.epoch, 1000)));
}

bool Admission::full() const {
  if (options_.objects != 0 && entries_.size() >= options_.objects) return true;
  if (options_.bytes == 0 || entries_.empty()) return false;
  return bytes_ + bytes_ / entries_.size() > options_.bytes;
}

Admission::Decision Admission::observe(uint64_t key, uint32_t weight) {
  if (const auto found = index_.find(key); found != index_.end()) {
    Entry& entry = entries_[found->second];
    entry.count = count_of(entry) + weight;
    entry.epoch = epoch_;
    weight_ += weight;
    return {};
  }
  weight_ += std::sqrt(weight);
  const double count = sketch_.add(key, weight);
  if (count < kEvidence * weight) return {};
  // Of many cold keys some are sampled too often by chance. A count of samples of weight w has the
  // standard deviation sqrt(w * count); what is sure is what counts, also as the start of the
  // exact count, so that a key admitted by chance soon leaves.
  const double sure = count - options_.noise * std::sqrt(weight * count);
  if (!full()) {
    insert(key, 0, std::max(sure, 1.0));
    return {true, std::nullopt};
  }
  if (sure <= options_.factor * floor_) return {};
  const auto victim = coldest();
  if (!victim) return {};
  floor_ = victim->count;
  if (sure <= options_.factor * victim->count + 1) return {};
  const uint64_t victim_key = entries_[victim->at].key;
  dropped(victim_key);
  insert(key, 0, sure);
  return {true, victim_key};
}

void Admission::insert(uint64_t key, size_t bytes, double count) {
  index_[key] = entries_.size();
  entries_.push_back({key, bytes, count, epoch_});
  bytes_ += bytes;
}

void Admission::remove(size_t at) {
  bytes_ -= entries_[at].bytes;
  index_.erase(entries_[at].key);
  if (at + 1 != entries_.size()) {
    entries_[at] = entries_.back();
    index_[entries_[at].key] = at;
  }
  entries_.pop_back();
}

void Admission::held(uint64_t key, size_t bytes) {
  const auto found = index_.find(key);
  if (found == index_.end()) {
    insert(key, bytes, std::max(1.0, static_cast<double>(sketch_.estimate(key))));
    return;
  }
  Entry& entry = entries_[found->second];
  bytes_ += bytes - entry.bytes;
  entry.bytes = bytes;
}

void Admission::dropped(uint64_t key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return;
  const double count = count_of(entries_[found->second]);
  sketch_.raise(key, static_cast<uint32_t>(std::min(count, 4294967295.0)));
  remove(found->second);
}

std::optional<Admission::Coldest> Admission::coldest() {
  std::array<Coldest, kPool + kSamples> found;
  size_t n = 0;
  const auto take = [&](size_t at) { found[n++] = {at, count_of(entries_[at])}; };
  if (entries_.size() <= found.size()) {
    for (size_t at = 0; at < entries_.size(); ++at) take(at);
  } else {
    for (size_t i = 0; i < pooled_; ++i) {
      const auto held = index_.find(pool_[i]);
      if (held != index_.end()) take(held->second);
    }
    for (size_t i = 0; i < kSamples; ++i) {
      const size_t at = random_.below(entries_.size());
      const auto same = [at](const Coldest& c) { return c.at == at; };
      if (std::none_of(found.begin(), found.begin() + static_cast<ptrdiff_t>(n), same)) take(at);
    }
  }
  if (n == 0) return std::nullopt;
  std::sort(found.begin(), found.begin() + static_cast<ptrdiff_t>(n),
            [](const Coldest& a, const Coldest& b) { return a.count < b.count; });
  pooled_ = std::min(n, kPool);
  for (size_t i = 0; i < pooled_; ++i) pool_[i] = entries_[found[i].at].key;
  return found[0];
}

std::optional<uint64_t> Admission::expel() {
  if (options_.bytes != 0 && bytes_ > options_.bytes) {
    if (const auto victim = coldest()) {
      const uint64_t key = entries_[victim->at].key;
      dropped(key);
      return key;
    }
  }
  for (; to_scan_ > 0 && !entries_.empty(); --to_scan_) {
    if (cursor_ >= entries_.size()) cursor_ = 0;
    if (count_of(entries_[cursor_]) < kCold) {
      const uint64_t key = entries_[cursor_].key;
      remove(cursor_);
      return key;
    }
    ++cursor_;
  }
  return std::nullopt;
}

void Admission::tick(Nanos now) {
  if (last_halving_ == 0) last_halving_ = now;
  const double enough =
      options_.weight_per_object * static_cast<double>(std::max<size_t>(entries_.size(), 64));
  const Nanos passed = now - last_halving_;
  if (passed >= options_.max_half_life || (passed >= options_.half_life && weight_ >= enough)) {
    sketch_.halve();
    ++epoch_;
    weight_ = 0;
    last_halving_ = now;
  }
  to_scan_ = std::min(kScanPerTick, entries_.size());
  floor_ = 0;
  if (full()) {
    if (const auto victim = coldest()) floor_ = victim->count;
  }
}

std::vector<std::pair<uint64_t, uint64_t>> Admission::hottest(size_t n) const {
  std::vector<std::pair<uint64_t, uint64_t>> keys;
  keys.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    keys.emplace_back(entry.key, static_cast<uint64_t>(count_of(entry)));
  }
  n = std::min(n, keys.size());
  std::partial_sort(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(n), keys.end(),
                    [](const auto& a, const auto& b) { return a.second > b.second; });
  keys.resize(n);
  return keys;
}

}  // namespace ballast::balance
