// SPDX-License-Identifier: Apache-2.0
#include "loader/pins.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <lb.skel.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

namespace ballast::loader {
namespace {

constexpr const char* kBpfFolder = "/sys/fs/bpf";

void append_words(void* text, const char* format, va_list arguments) {
  char words[256];
  const int length = vsnprintf(words, sizeof(words), format, arguments);
  if (length > 0) static_cast<std::string*>(text)->append(words);
}

bool is_shaped_alike(const bpf_map* map, int fd) {
  bpf_map_info info{};
  uint32_t size = sizeof(info);
  return bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && info.type == bpf_map__type(map) &&
         info.key_size == bpf_map__key_size(map) && info.value_size == bpf_map__value_size(map) &&
         info.max_entries == bpf_map__max_entries(map);
}

// Whether the map that is at `path`, if one is, can be this program's.
Result<> check_pinned(const bpf_map* map, const std::string& path) {
  const int fd = bpf_obj_get(path.c_str());
  if (fd < 0 && errno == ENOENT) return {};
  if (fd < 0) return fail_errno("open " + path, errno);
  const bool is_alike = is_shaped_alike(map, fd);
  close(fd);
  if (is_alike) return {};
  return fail(ErrorCode::kState, path + " is of another size");
}

std::optional<uint64_t> pinned_number(const std::string& folder, uint32_t place) {
  const int fd = bpf_obj_get((folder + "/seed").c_str());
  if (fd < 0) return std::nullopt;
  uint64_t number = 0;
  const int status = bpf_map_lookup_elem(fd, &place, &number);
  close(fd);
  return status == 0 ? std::optional<uint64_t>(number) : std::nullopt;
}

bool is_bpf_file_system(const std::string& path) {
  struct statfs system{};
  return statfs(path.c_str(), &system) == 0 && static_cast<uint32_t>(system.f_type) == BPF_FS_MAGIC;
}

}  // namespace

uint64_t layout_of(const bpf_object* object) {
  std::string text;
  const std::unique_ptr<btf_dump, void (*)(btf_dump*)> dump(
      btf_dump__new(bpf_object__btf(object), append_words, &text, nullptr), btf_dump__free);
  const bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    if (bpf_map__is_internal(map)) continue;
    text += bpf_map__name(map);
    for (const uint32_t type : {bpf_map__btf_key_type_id(map), bpf_map__btf_value_type_id(map)})
      if (type != 0) (void)btf_dump__dump_type(dump.get(), type);
  }
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

Result<> pin_maps(bpf_object* object, const std::string& folder) {
  if (folder.empty()) return {};
  if (const Result<> made = make_pins(folder); !made) return made;
  const bool has_any = access((folder + "/seed").c_str(), F_OK) == 0;
  if (has_any && pinned_number(folder, kLayoutPlace) != layout_of(object))
    return fail(ErrorCode::kState, "the tables in " + folder + " are another version's");
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    if (bpf_map__is_internal(map)) continue;
    const std::string path = folder + "/" + bpf_map__name(map);
    if (const Result<> alike = check_pinned(map, path); !alike) return alike;
    if (bpf_map__set_pin_path(map, path.c_str()) != 0) return fail_errno("pin " + path, errno);
  }
  return {};
}

Result<> make_pins(const std::string& folder) {
  if (folder.starts_with(std::string(kBpfFolder) + "/") && !is_bpf_file_system(kBpfFolder) &&
      mount("bpf", kBpfFolder, "bpf", 0, "mode=0700") != 0)
    return fail_errno(std::string("mount a BPF file system on ") + kBpfFolder, errno);
  // Who can open a folder can lock it, and so keep balancers and captures from starting.
  const mode_t mask = umask(0077);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  umask(mask);
  if (error) return fail_errno("make the folder " + folder, error.value());
  if (is_bpf_file_system(folder)) return {};
  return fail(ErrorCode::kInvalid, folder + " is not in a BPF file system (mount -t bpf)");
}

std::optional<uint64_t> pinned_seed(const std::string& pins) {
  return pinned_number(pins, kSeedPlace);
}

Result<> remove_pins(const std::string& pins) {
  const std::unique_ptr<LbSkeleton, void (*)(LbSkeleton*)> skeleton(LbSkeleton__open(),
                                                                    LbSkeleton__destroy);
  if (!skeleton) return fail_errno("open the load balancer's program", errno);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(pins, error)) {
    const std::string name = entry.path().filename();
    const bool is_ours = name.starts_with(kPinnedLink) ||
                         bpf_object__find_map_by_name(skeleton->obj, name.c_str()) != nullptr;
    if (is_ours && unlink(entry.path().c_str()) != 0)
      return fail_errno("remove " + entry.path().string(), errno);
  }
  return {};
}

}  // namespace ballast::loader
