// SPDX-License-Identifier: Apache-2.0
#include "balance/space_saving.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace ballast::balance {

SpaceSaving::SpaceSaving(size_t capacity) : capacity_(capacity) {
  BALLAST_CHECK(capacity > 0);
  heap_.reserve(capacity);
  index_.reserve(capacity);
}

uint64_t SpaceSaving::add(uint64_t key, uint64_t weight) {
  total_ += weight;
  if (const auto found = index_.find(key); found != index_.end()) {
    const size_t at = found->second;
    const uint64_t count = heap_[at].count += weight;
    sift_down(at);
    return count;
  }
  if (heap_.size() < capacity_) {
    heap_.push_back({key, weight, 0});
    index_[key] = heap_.size() - 1;
    sift_up(heap_.size() - 1);
    return weight;
  }
  // The newcomer takes the least key's place and, as its error, its count. The index's node is
  // reused, so a full summary allocates nothing.
  Item& least = heap_.front();
  auto node = index_.extract(least.key);
  node.key() = key;
  node.mapped() = 0;
  index_.insert(std::move(node));
  const uint64_t count = least.count + weight;
  least = {key, count, least.count};
  sift_down(0);
  return count;
}

std::vector<SpaceSaving::Item> SpaceSaving::top(size_t n) const {
  std::vector<Item> items(heap_);
  n = std::min(n, items.size());
  std::partial_sort(items.begin(), items.begin() + static_cast<ptrdiff_t>(n), items.end(),
                    [](const Item& a, const Item& b) { return a.count > b.count; });
  items.resize(n);
  return items;
}

void SpaceSaving::halve() {
  // Halving keeps the heap's order; what falls to zero is re-heaped out of it.
  total_ >>= 1;
  std::vector<Item> kept;
  kept.reserve(capacity_);
  for (Item item : heap_) {
    item.count >>= 1;
    item.error >>= 1;
    if (item.count > 0) kept.push_back(item);
  }
  std::sort(kept.begin(), kept.end(),
            [](const Item& a, const Item& b) { return a.count < b.count; });
  heap_ = std::move(kept);
  index_.clear();
  for (size_t at = 0; at < heap_.size(); ++at) index_[heap_[at].key] = at;
}

void SpaceSaving::place(size_t at, const Item& item) {
  heap_[at] = item;
  index_[item.key] = at;
}

void SpaceSaving::sift_down(size_t at) {
  const Item item = heap_[at];
  const size_t start = at;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].count < heap_[child].count) ++child;
    if (heap_[child].count >= item.count) break;
    place(at, heap_[child]);
    at = child;
  }
  if (at != start) place(at, item);
}

void SpaceSaving::sift_up(size_t at) {
  const Item item = heap_[at];
  const size_t start = at;
  while (at > 0 && heap_[(at - 1) / 2].count > item.count) {
    place(at, heap_[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  if (at != start) place(at, item);
}

}  // namespace ballast::balance
