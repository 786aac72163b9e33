// SPDX-License-Identifier: Apache-2.0
#include "bench/verifier.h"

#include "bench/value.h"

namespace ballast::bench {

void Verifier::acknowledge(uint32_t key, uint32_t number) {
  keys_[key].acknowledged = std::max(keys_[key].acknowledged, number);
}

Finding Verifier::check(const Read& read) {
  const Finding finding = judge(read);
  ++counts_[static_cast<size_t>(finding)];
  return finding;
}

Finding Verifier::judge(const Read& read) {
  Key& key = keys_[read.key];
  if (!read.value) {
    if (key.unsure) return Finding::kGood;
    // Replies of the writing connection come in order, so what is acknowledged now came before.
    const uint32_t floor = read.own ? key.acknowledged : read.mark.floor;
    return floor > 0 ? Finding::kLost : Finding::kGood;
  }
  const auto tag = read_value(*read.value);
  if (!tag || tag->key_hash != read.key_hash) return Finding::kForeign;
  if (key.unsure) return Finding::kGood;
  // Another run's value is older than all of this run's.
  if (tag->run != run_) return judge_number(read, 0);
  if (tag->number > key.issued || tag->number == 0) return Finding::kForeign;
  const Finding finding = judge_number(read, tag->number);
  key.seen = std::max(key.seen, tag->number);
  return finding;
}

Finding Verifier::judge_number(const Read& read, uint32_t number) {
  const Key& key = keys_[read.key];
  if (number < read.mark.floor) return Finding::kStale;
  if (!read.own) return Finding::kGood;
  const bool in_order = number >= key.acknowledged && number <= read.mark.issued;
  return in_order ? Finding::kGood : Finding::kOutOfOrder;
}

uint64_t Verifier::violations() const {
  uint64_t sum = 0;
  for (size_t i = 1; i < kFindings; ++i) sum += counts_[i];
  return sum;
}

uint64_t Verifier::unsure_keys() const {
  return static_cast<uint64_t>(
      std::count_if(keys_.begin(), keys_.end(), [](const Key& key) { return key.unsure; }));
}

}  // namespace ballast::bench
