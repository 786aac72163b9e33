// SPDX-License-Identifier: Apache-2.0
#include "loader/map_view.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace ballast::loader {
namespace {

// ENOENT is an answer, not an error.
Result<bool> answer(int status, const char* call, const char* name) {
  if (status == 0) return true;
  if (errno == ENOENT) return false;
  return fail_errno(std::string(call) + " map " + name, errno);
}

}  // namespace

Result<bool> RawMap::find(const void* key, void* value) const {
  return answer(bpf_map_lookup_elem(fd_, key, value), "read", name_);
}

Result<> RawMap::put(const void* key, const void* value) const {
  if (bpf_map_update_elem(fd_, key, value, BPF_ANY) == 0) return {};
  return fail_errno(std::string("write map ") + name_, errno);
}

Result<bool> RawMap::erase(const void* key) const {
  return answer(bpf_map_delete_elem(fd_, key), "delete from map", name_);
}

Result<bool> RawMap::next(const void* key, void* after) const {
  return answer(bpf_map_get_next_key(fd_, key, after), "walk", name_);
}

Result<uint32_t> RawMap::batch(std::optional<uint32_t>& place, void* keys, void* values,
                               uint32_t count) const {
  uint32_t after = 0;
  uint32_t* const from = place ? &*place : nullptr;
  const int status = bpf_map_lookup_batch(fd_, from, &after, keys, values, &count, nullptr);
  if (status != 0 && errno != ENOENT) return fail_errno(std::string("walk map ") + name_, errno);
  place = status == 0 ? std::optional<uint32_t>(after) : std::nullopt;
  return count;
}

uint32_t possible_cpus() {
  static const int count = libbpf_num_possible_cpus();
  return static_cast<uint32_t>(std::max(count, 1));
}

}  // namespace ballast::loader
