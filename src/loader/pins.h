// SPDX-License-Identifier: Apache-2.0
// Maps and attachments that outlive the process, in a folder of a BPF file system.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

struct bpf_object;

namespace ballast::loader {

// Pinned attachments are called this and their interface's name.
inline constexpr const char* kPinnedLink = "link-";

// Places in map "seed".
inline constexpr uint32_t kSeedPlace = 0;
inline constexpr uint32_t kLayoutPlace = 1;

// Makes the folder, and mounts the BPF file system on /sys/fs/bpf where a folder there is wanted
// and nobody has. kInvalid if the folder is in another file system.
Result<> make_pins(const std::string& folder);

// A hash of the definitions of all keys and values: what another build would read otherwise has
// another one.
uint64_t layout_of(const bpf_object* object);

// Tells libbpf where each map lives: it takes what is there, or puts the new one there. kState:
// what is there is of another size or layout.
Result<> pin_maps(bpf_object* object, const std::string& folder);

// What a map "seed" among the pins says, if there is one.
std::optional<uint64_t> pinned_seed(const std::string& folder);

// Removes the maps and attachments among the pins, which end unless somebody else holds them, and
// nothing else; the folder stays.
Result<> remove_pins(const std::string& folder);

}  // namespace ballast::loader
