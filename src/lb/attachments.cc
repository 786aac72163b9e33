// SPDX-License-Identifier: Apache-2.0
#include "lb/attachments.h"

#include <fmt/format.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "loader/pins.h"

namespace ballast::lb {
namespace {

using loader::Attachment;
using loader::AttachMode;
using loader::LbProgram;

std::string link_path(const model::LbSettings& settings, const std::string& interface) {
  return settings.pins + "/" + loader::kPinnedLink + interface;
}

// Native unless it is asked for otherwise or cannot be had.
Result<Attached> attach_new(const LbProgram& program, const model::LbSettings& settings,
                            Attached made) {
  if (settings.attach != model::Attach::kGeneric) {
    Result<Attachment> native = program.attach(made.ifindex, AttachMode::kNative);
    if (native) {
      made.is_native = true;
      made.attachment = std::move(*native);
      return made;
    }
    if (native.error().sys_errno == EBUSY)
      return fail(ErrorCode::kSystem,
                  fmt::format("{} has another XDP program (ip link set {} xdp off)", made.interface,
                              made.interface));
    if (settings.attach == model::Attach::kNative)
      return fail(ErrorCode::kSystem, fmt::format("{} takes no program in its driver: {}",
                                                  made.interface, native.error().message));
    log_warning("{}: not in the driver ({}), so in the kernel's generic path, which is slower",
                made.interface, native.error().message);
  }
  Result<Attachment> generic = program.attach(made.ifindex, AttachMode::kGeneric);
  if (!generic)
    return fail(ErrorCode::kSystem, fmt::format("{}: {}", made.interface, generic.error().message));
  made.attachment = std::move(*generic);
  return made;
}

Result<Attached> attach_one(const LbProgram& program, const model::LbSettings& settings,
                            const std::string& interface) {
  Attached made{.interface = interface, .ifindex = if_nametoindex(interface.c_str())};
  if (made.ifindex == 0)
    return fail(ErrorCode::kInvalid, "there is no interface \"" + interface + "\"");
  if (settings.pins.empty()) return attach_new(program, settings, std::move(made));
  const std::string path = link_path(settings, interface);
  Result<Attachment> former = program.take_over(path);
  if (former) {
    made.is_taken_over = true;
    made.is_native = settings.attach != model::Attach::kGeneric;
    made.attachment = std::move(*former);
    return made;
  }
  // Of an interface that went, and came back as another one.
  unlink(path.c_str());
  return attach_new(program, settings, std::move(made));
}

// Left by a former process on an interface that is not ours any more.
void remove_others(const model::LbSettings& settings) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(settings.pins, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(loader::kPinnedLink)) continue;
    const std::string interface = name.substr(std::string_view(loader::kPinnedLink).size());
    if (std::ranges::find(settings.interfaces, interface) != settings.interfaces.end()) continue;
    log_info("{}: detached, it is not among the interfaces any more", interface);
    unlink(entry.path().c_str());
  }
}

}  // namespace

Result<std::vector<Attached>> attach_all(const LbProgram& program,
                                         const model::LbSettings& settings) {
  std::vector<Attached> all;
  for (const std::string& interface : settings.interfaces) {
    Result<Attached> attached = attach_one(program, settings, interface);
    if (!attached) return Unexpected(attached.error());
    all.push_back(std::move(*attached));
  }
  if (settings.pins.empty()) return all;
  remove_others(settings);
  for (const Attached& attached : all) {
    const std::string path = link_path(settings, attached.interface);
    if (!settings.keep) {
      unlink(path.c_str());
    } else if (!attached.is_taken_over) {
      if (const Result<> pinned = attached.attachment.pin(path); !pinned)
        return Unexpected(pinned.error());
    }
  }
  return all;
}

}  // namespace ballast::lb
