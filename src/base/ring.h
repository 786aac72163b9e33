// SPDX-License-Identifier: Apache-2.0
// A queue in one allocation that grows by doubling and keeps its room; empty ones hold none.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace ballast {

template <typename T>
class Ring {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return slots_[(head_ + i) & (capacity_ - 1)]; }
  T& front() { return slots_[head_]; }
  T& back() { return (*this)[size_ - 1]; }

  void push_back(T value) {
    if (size_ == capacity_) grow();
    slots_[(head_ + size_) & (capacity_ - 1)] = std::move(value);
    ++size_;
  }
  void pop_front() {
    slots_[head_] = T();
    head_ = (head_ + 1) & (capacity_ - 1);
    --size_;
  }
  // Gives the memory back if it was a large queue once.
  void shrink_if_empty(size_t keep) {
    if (size_ != 0 || capacity_ <= keep) return;
    slots_.reset();
    capacity_ = head_ = 0;
  }

 private:
  void grow() {
    const size_t capacity = capacity_ == 0 ? 4 : capacity_ * 2;
    auto slots = std::make_unique<T[]>(capacity);
    for (size_t i = 0; i < size_; ++i) slots[i] = std::move((*this)[i]);
    slots_ = std::move(slots);
    capacity_ = capacity;
    head_ = 0;
  }

  std::unique_ptr<T[]> slots_;
  size_t capacity_ = 0;
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace ballast
