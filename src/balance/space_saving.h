// SPDX-License-Identifier: Apache-2.0
// Space-Saving (Metwally, Agrawal, El Abbadi 2005): the most frequent keys of a stream with counts
// and error bounds, in fixed memory. A heap and an index: O(log capacity) in the worst case, O(1)
// for a key that keeps its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ballast::balance {

class SpaceSaving {
 public:
  struct Item {
    uint64_t key = 0;
    uint64_t count = 0;  // true count is in [count - error, count]
    uint64_t error = 0;
  };

  explicit SpaceSaving(size_t capacity);  // at least 1

  // Returns the key's new count.
  uint64_t add(uint64_t key, uint64_t weight = 1);
  // The n largest counts, largest first. Every key with a true count above total / capacity is
  // among the items.
  std::vector<Item> top(size_t n) const;
  // Halves all counts and errors; keys that fall to nothing leave.
  void halve();

  uint64_t total() const { return total_; }
  // No key that is not held has a true count above this.
  uint64_t least() const { return heap_.size() < capacity_ ? 0 : heap_.front().count; }
  size_t size() const { return heap_.size(); }

 private:
  void place(size_t at, const Item& item);
  void sift_down(size_t at);
  void sift_up(size_t at);

  size_t capacity_;
  uint64_t total_ = 0;
  std::vector<Item> heap_;  // least count first
  std::unordered_map<uint64_t, size_t> index_;
};

}  // namespace ballast::balance
