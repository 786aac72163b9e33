// SPDX-License-Identifier: Apache-2.0
// A hash set of objects that carry their key and its hash: found by a precomputed hash, without
// building a string, at addresses that do not move.
#pragma once

#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <memory>
#include <string_view>

namespace ballast::cache {

struct HashedKey {
  std::string_view key;
  uint64_t hash;  // balance::key_hash(key)
};

// T has members `std::string key` and `uint64_t hash`.
template <typename T>
class KeyTable {
 public:
  T* find(HashedKey key) const {
    auto it = set_.find(key);
    return it == set_.end() ? nullptr : it->get();
  }
  // Any object whose key has this hash.
  T* find_hash(uint64_t hash) const {
    auto it = set_.find(HashOnly{hash});
    return it == set_.end() ? nullptr : it->get();
  }
  // The key must not be in the table.
  T* insert(std::unique_ptr<T> object) { return set_.insert(std::move(object)).first->get(); }
  // Returns the object, so that the caller decides when it dies; null if there is none.
  std::unique_ptr<T> take(T* object) {
    auto it = set_.find(HashedKey{object->key, object->hash});
    if (it == set_.end()) return nullptr;
    std::unique_ptr<T> taken = std::move(const_cast<std::unique_ptr<T>&>(*it));
    set_.erase(it);
    return taken;
  }
  size_t size() const { return set_.size(); }
  bool empty() const { return set_.empty(); }

 private:
  struct HashOnly {
    uint64_t hash;
  };
  struct Hash {
    using is_transparent = void;
    using is_avalanching = void;
    size_t operator()(const std::unique_ptr<T>& object) const { return object->hash; }
    size_t operator()(HashedKey key) const { return key.hash; }
    size_t operator()(HashOnly key) const { return key.hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(HashedKey a, const std::unique_ptr<T>& b) const {
      return a.hash == b->hash && a.key == b->key;
    }
    bool operator()(const std::unique_ptr<T>& a, HashedKey b) const { return (*this)(b, a); }
    bool operator()(HashOnly a, const std::unique_ptr<T>& b) const { return a.hash == b->hash; }
    bool operator()(const std::unique_ptr<T>& a, HashOnly b) const { return a->hash == b.hash; }
    bool operator()(const std::unique_ptr<T>& a, const std::unique_ptr<T>& b) const {
      return a == b || (a->hash == b->hash && a->key == b->key);
    }
  };
  boost::unordered_flat_set<std::unique_ptr<T>, Hash, Equal> set_;
};

}  // namespace ballast::cache
