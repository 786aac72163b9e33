// SPDX-License-Identifier: Apache-2.0
// A map of a loaded program, with the key's and the value's type.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"

namespace ballast::loader {

// The system calls, on bytes. Errors name the map.
class RawMap {
 public:
  RawMap() = default;
  RawMap(int fd, const char* name) : fd_(fd), name_(name) {}

  Result<bool> find(const void* key, void* value) const;  // false: there is none
  Result<> put(const void* key, const void* value) const;
  Result<bool> erase(const void* key) const;  // false: there was none
  // The key after `key`, or the first for nullptr; false at the end. A key that is gone begins
  // anew.
  Result<bool> next(const void* key, void* after) const;
  // The next `count` entries or fewer of a walk through a hash map, and how many there were.
  // `place` is nothing at the walk's begin and is so again when it is over.
  Result<uint32_t> batch(std::optional<uint32_t>& place, void* keys, void* values,
                         uint32_t count) const;
  int fd() const { return fd_; }

 private:
  int fd_ = -1;  // the program's
  const char* name_ = "";
};

// Valid while its program is. Plain data, cheap to copy; any thread.
template <typename Key, typename Value>
class MapView : public RawMap {
 public:
  using RawMap::RawMap;

  Result<std::optional<Value>> get(const Key& key) const {
    Value value{};
    const Result<bool> found = RawMap::find(&key, &value);
    if (!found) return Unexpected(found.error());
    return *found ? std::optional<Value>(value) : std::nullopt;
  }
  Result<> set(const Key& key, const Value& value) const { return RawMap::put(&key, &value); }
  Result<bool> remove(const Key& key) const { return RawMap::erase(&key); }

  // The next `count` entries or fewer of a walk; `place` is nothing at its begin and is so again
  // when it is over. Of hash maps only.
  Result<> step(std::optional<uint32_t>& place, uint32_t count,
                const std::function<void(const Key&, const Value&)>& visit) const {
    std::vector<Key> keys(count);
    std::vector<Value> values(count);
    const Result<uint32_t> found = RawMap::batch(place, keys.data(), values.data(), count);
    if (!found) return Unexpected(found.error());
    for (uint32_t i = 0; i < *found; ++i) visit(keys[i], values[i]);
    return {};
  }

  // Every entry that is there during the whole call, once or more often if others write.
  Result<> each(const std::function<void(const Key&, const Value&)>& visit) const {
    Key key{};
    Key after{};
    Result<bool> more = RawMap::next(nullptr, &after);
    while (more && *more) {
      key = after;
      const auto value = get(key);
      if (!value) return Unexpected(value.error());
      if (*value) visit(key, **value);
      more = RawMap::next(&key, &after);
    }
    return more ? Result<>() : Unexpected(more.error());
  }
};

// How many values a per-CPU map has for a key.
uint32_t possible_cpus();

// An array with one value a CPU, which is a struct of uint64_t or one itself; the sum over all.
template <typename Value>
class PerCpuView : public RawMap {
 public:
  using RawMap::RawMap;
  static_assert(sizeof(Value) % 8 == 0);

  Result<Value> sum(uint32_t index) const {
    constexpr size_t kWords = sizeof(Value) / 8;
    std::vector<uint64_t> values(kWords * possible_cpus());
    const Result<bool> found = RawMap::find(&index, values.data());
    if (!found) return Unexpected(found.error());
    union {
      uint64_t words[kWords];
      Value value;
    } sum = {};
    for (size_t i = 0; i < values.size(); ++i) sum.words[i % kWords] += values[i];
    return sum.value;
  }
  // 0 on every CPU. What a packet counts meanwhile may be lost.
  Result<> clear(uint32_t index) const {
    const std::vector<uint64_t> values(sizeof(Value) / 8 * possible_cpus());
    return RawMap::put(&index, values.data());
  }
};

}  // namespace ballast::loader
