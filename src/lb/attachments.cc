// SPDX-License-Identifier: Apache-2.0
#include "lb/attachments.h"

#include <fmt/format.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/log.h"
#include "loader/pins.h"

namespace ballast::lb {
namespace {

using loader::Attachment;
using loader::AttachMode;

// A BPF file system takes no dots, and interfaces have no colons.
std::string link_path(const AttachOptions& options, std::string interface) {
  std::ranges::replace(interface, '.', ':');
  return options.pins + "/" + loader::kPinnedLink + interface;
}

bool is_wanted(model::Attach wanted, bool is_native) {
  return wanted == model::Attach::kAuto || (wanted == model::Attach::kNative) == is_native;
}

Unexpected about(const std::string& interface, const Error& error) {
  return fail(ErrorCode::kSystem, fmt::format("{}: {}", interface, error.message));
}

// Native unless it is asked for otherwise or cannot be had.
Result<Attached> attach_new(int program, model::Attach mode, Attached made) {
  if (mode != model::Attach::kGeneric) {
    Result<Attachment> native = loader::attach(program, made.ifindex, AttachMode::kNative);
    if (native) {
      made.is_native = true;
      made.attachment = std::move(*native);
      return made;
    }
    if (native.error().code == ErrorCode::kState) return about(made.interface, native.error());
    if (mode == model::Attach::kNative)
      return fail(ErrorCode::kSystem, fmt::format("{} takes no program in its driver: {}",
                                                  made.interface, native.error().message));
    log_warning("{}: not in the driver ({}), so in the kernel's generic path, which is slower",
                made.interface, native.error().message);
  }
  Result<Attachment> generic = loader::attach(program, made.ifindex, AttachMode::kGeneric);
  if (!generic) return about(made.interface, generic.error());
  made.attachment = std::move(*generic);
  return made;
}

Result<Attached> attach_one(int program, const AttachOptions& options, Attached made) {
  if (options.pins.empty()) return attach_new(program, options.mode, std::move(made));
  const std::string path = link_path(options, made.interface);
  Result<std::optional<Attachment>> former = loader::take_over(program, made.ifindex, path);
  if (!former) return about(made.interface, former.error());
  if (*former) {
    made.is_native = loader::is_native(made.ifindex);
    if (is_wanted(options.mode, made.is_native)) {
      made.is_taken_over = true;
      made.attachment = std::move(**former);
      return made;
    }
    (*former)->detach();
    made.is_native = false;
  }
  unlink(path.c_str());
  return attach_new(program, options.mode, std::move(made));
}

Result<> keep(const Attached& attached, const AttachOptions& options) {
  if (options.pins.empty()) return {};
  const std::string path = link_path(options, attached.interface);
  if (!options.keep) {
    unlink(path.c_str());
    return {};
  }
  if (attached.is_taken_over) return {};
  if (const Result<> made = loader::make_pins(options.pins); !made) return made;
  return attached.attachment.pin(path);
}

void say(const Attached& attached) {
  log_info("{}: attached, {}{}", attached.interface, mode_of(attached),
           attached.is_taken_over ? ", taken over from the former process" : "");
}

}  // namespace

const char* mode_of(const Attached& attached) {
  if (attached.ifindex == 0) return "gone";
  return attached.is_native ? "native" : "generic";
}

Result<std::vector<Attached>> attach_all(int program, const AttachOptions& options) {
  std::vector<Attached> all;
  for (const std::string& interface : options.interfaces) {
    const bool is_again =
        std::ranges::any_of(all, [&](const Attached& each) { return each.interface == interface; });
    if (is_again) continue;
    all.push_back({.interface = interface, .ifindex = if_nametoindex(interface.c_str())});
    if (all.back().ifindex == 0)
      return fail(ErrorCode::kSystem, "there is no interface \"" + interface + "\"");
  }
  for (Attached& each : all) {
    Result<Attached> attached = attach_one(program, options, std::move(each));
    if (!attached) return Unexpected(attached.error());
    each = std::move(*attached);
  }
  for (const Attached& attached : all) {
    if (const Result<> kept = keep(attached, options); !kept) return Unexpected(kept.error());
    say(attached);
  }
  return all;
}

void remove_others(const AttachOptions& options) {
  if (options.pins.empty()) return;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options.pins, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(loader::kPinnedLink)) continue;
    std::string interface = name.substr(std::string_view(loader::kPinnedLink).size());
    std::ranges::replace(interface, ':', '.');
    if (std::ranges::find(options.interfaces, interface) != options.interfaces.end()) continue;
    log_info("{}: detached, it is not among the interfaces any more", interface);
    unlink(entry.path().c_str());
  }
}

void follow(int program, const AttachOptions& options, std::vector<Attached>& attached) {
  for (Attached& each : attached) {
    const uint32_t ifindex = if_nametoindex(each.interface.c_str());
    if (ifindex == each.ifindex) continue;
    each.ifindex = ifindex;
    each.attachment = {};
    if (ifindex == 0) {
      log_error("{} is gone", each.interface);
      continue;
    }
    Result<Attached> again =
        attach_one(program, options, {.interface = each.interface, .ifindex = ifindex});
    const Result<> kept = again ? keep(*again, options) : Unexpected(again.error());
    if (!kept) {
      log_error("{}; tried again", kept.error().message);
      each.ifindex = 0;
      continue;
    }
    each = std::move(*again);
    say(each);
  }
}

}  // namespace ballast::lb
