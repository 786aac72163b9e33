// SPDX-License-Identifier: Apache-2.0
// Which keys have commands pending, for a client with many: a counting filter, asked in the same
// time however many there are. A false yes costs a cached answer, a false no cannot be.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ballast::cache {

class PendingKeys {
 public:
  static constexpr size_t kMost = UINT16_MAX;  // commands counted at once

  // `hash` of the command's key; 0 for a command on several keys, which may be any.
  void add(uint64_t hash) { ++(hash == 0 ? any_ : counts_[hash % kSlots]); }
  void remove(uint64_t hash) { --(hash == 0 ? any_ : counts_[hash % kSlots]); }
  bool may_contain(uint64_t hash) const { return any_ != 0 || counts_[hash % kSlots] != 0; }

 private:
  static constexpr size_t kSlots = 1024;
  uint16_t any_ = 0;
  std::array<uint16_t, kSlots> counts_{};
};

}  // namespace ballast::cache
