// SPDX-License-Identifier: Apache-2.0
#include "trace/key_counts.h"

#include <algorithm>
#include <cmath>

#include "balance/hash.h"
#include "base/check.h"
#include "proto/slot.h"

namespace ballast::trace {
namespace {

constexpr size_t kMostNames = 4096;
constexpr size_t kMostNameBytes = 200;
// A key of the summary is given out if its error is at most this part of its count.
constexpr uint64_t kSurePart = 16;

}  // namespace

void DistinctHashes::add(uint64_t hash) {
  // Independent of the key's hash as it is used elsewhere.
  hash = balance::mix(hash, 97);
  if (heap_.size() == kKept && hash >= heap_.front()) return;
  if (!kept_.insert(hash).second) return;
  heap_.push_back(hash);
  std::push_heap(heap_.begin(), heap_.end());
  if (heap_.size() <= kKept) return;
  std::pop_heap(heap_.begin(), heap_.end());
  kept_.erase(heap_.back());
  heap_.pop_back();
}

double DistinctHashes::estimate() const {
  if (heap_.size() < kKept) return static_cast<double>(heap_.size());
  return static_cast<double>(kKept - 1) / (static_cast<double>(heap_.front()) * 0x1.0p-64);
}

double DistinctHashes::error() const {
  return heap_.size() < kKept ? 0 : estimate() / std::sqrt(static_cast<double>(kKept - 2));
}

KeyCounts::KeyCounts(size_t most_keys) : most_keys_(most_keys) { BALLAST_CHECK(most_keys > 0); }

void KeyCounts::add(std::string_view key, bool write, uint64_t count) {
  const uint64_t hash = balance::key_hash(key);
  requests_ += count;
  if (!summary_ && exact_.size() >= most_keys_ && !exact_.contains(hash)) go_over_to_summary();
  if (!summary_) {
    note_name(hash, key, count_exactly(hash, key, write, count));
    return;
  }
  distinct_.add(hash);
  note_name(hash, key, summary_->add(hash, count));
}

uint64_t KeyCounts::count_exactly(uint64_t hash, std::string_view key, bool write, uint64_t count) {
  Exact& exact = exact_[hash];
  if (exact.count == 0) exact.slot = proto::key_slot(key);
  exact.count += count;
  if (write) exact.writes += count;
  return exact.count;
}

void KeyCounts::go_over_to_summary() {
  summary_ = std::make_unique<balance::SpaceSaving>(most_keys_);
  for (const auto& [hash, exact] : exact_) {
    distinct_.add(hash);
    summary_->add(hash, exact.count);
  }
  exact_ = {};
}

// Half of the names go when there are too many, those of the smallest counts. A key without a name
// gets one when its count next rises, so at the end the most frequent ones have theirs.
void KeyCounts::note_name(uint64_t hash, std::string_view key, uint64_t count) {
  if (count < least_named_) return;
  Name& name = names_[hash];
  if (name.count == 0) {
    name.text = key.substr(0, kMostNameBytes);
    if (key.size() > kMostNameBytes) name.text += "...";
    name.slot = proto::key_slot(key);
  }
  name.count = count;
  if (names_.size() < kMostNames) return;
  std::vector<std::pair<uint64_t, uint64_t>> by_count;
  for (const auto& [each, held] : names_) by_count.emplace_back(held.count, each);
  const auto middle = by_count.begin() + kMostNames / 2;
  std::nth_element(by_count.begin(), middle, by_count.end());
  least_named_ = middle->first;
  for (auto at = by_count.begin(); at != middle; ++at) names_.erase(at->second);
}

void KeyCounts::finish(Workload& workload) const {
  workload.requests = requests_;
  workload.exact = !summary_;
  if (summary_) {
    workload.distinct = distinct_.estimate();
    workload.distinct_error = distinct_.error();
    workload.most_error = summary_->least();
    for (const balance::SpaceSaving::Item& item : summary_->top(summary_->size()))
      if (item.error * kSurePart <= item.count)
        workload.keys.push_back({item.key, item.count, item.error, 0, kNoSlot});
  } else {
    workload.distinct = static_cast<double>(exact_.size());
    workload.keys.reserve(exact_.size());
    for (const auto& [hash, exact] : exact_)
      workload.keys.push_back({hash, exact.count, 0, exact.writes, exact.slot});
  }
  std::sort(workload.keys.begin(), workload.keys.end(), [](const KeyCount& a, const KeyCount& b) {
    return a.count != b.count ? a.count > b.count : a.hash < b.hash;
  });
  const size_t named = std::min(workload.keys.size(), kMostNames);
  for (size_t i = 0; i < named; ++i) {
    const auto found = names_.find(workload.keys[i].hash);
    workload.names.push_back(found == names_.end() ? std::string() : found->second.text);
    if (found != names_.end()) workload.keys[i].slot = found->second.slot;
  }
}

}  // namespace ballast::trace
