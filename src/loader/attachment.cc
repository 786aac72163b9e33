// SPDX-License-Identifier: Apache-2.0
#include "loader/attachment.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <unistd.h>

#include <cerrno>

namespace ballast::loader {
namespace {

bpf_xdp_query_opts query(uint32_t ifindex) {
  bpf_xdp_query_opts found{};
  found.sz = sizeof(found);
  if (bpf_xdp_query(static_cast<int>(ifindex), 0, &found) != 0) found.attach_mode = 0;
  return found;
}

// An interface of another namespace may have the same index, but not the same program.
bool is_on(const bpf_link_info& link, uint32_t ifindex) {
  return link.xdp.ifindex == ifindex && query(ifindex).prog_id == link.prog_id;
}

}  // namespace

Attachment::~Attachment() {
  if (fd_ >= 0) close(fd_);
}

Result<> Attachment::pin(const std::string& path) const {
  if (bpf_obj_pin(fd_, path.c_str()) != 0) return fail_errno("pin " + path, errno);
  return {};
}

void Attachment::detach() const { bpf_link_detach(fd_); }

Result<Attachment> attach(int program, uint32_t ifindex, AttachMode mode) {
  bpf_link_create_opts options{};
  options.sz = sizeof(options);
  options.flags = mode == AttachMode::kNative ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
  const int fd = bpf_link_create(program, static_cast<int>(ifindex), BPF_XDP, &options);
  // EEXIST: in the other mode.
  if (fd == -EBUSY || fd == -EEXIST)
    return fail(ErrorCode::kState,
                "it has another XDP program (bpftool net shows it; one that is pinned or that a "
                "process holds ends with that)");
  if (fd < 0) return fail_errno("attach to interface " + std::to_string(ifindex), -fd);
  return Attachment(fd);
}

Result<std::optional<Attachment>> take_over(int program, uint32_t ifindex,
                                            const std::string& path) {
  const int fd = bpf_obj_get(path.c_str());
  if (fd < 0 && errno == ENOENT) return std::nullopt;
  if (fd < 0) return fail_errno("open " + path, errno);
  Attachment attachment(fd);
  bpf_link_info link{};
  uint32_t size = sizeof(link);
  if (bpf_obj_get_info_by_fd(fd, &link, &size) != 0) return fail_errno("look at " + path, errno);
  if (link.xdp.ifindex == 0) return std::nullopt;
  if (!is_on(link, ifindex))
    return fail(ErrorCode::kState,
                path +
                    " is the program of another interface, of another namespace or renamed; "
                    "remove the file to end that one");
  if (bpf_link_update(fd, program, nullptr) != 0) return fail_errno("take over " + path, errno);
  return attachment;
}

bool is_native(uint32_t ifindex) { return query(ifindex).attach_mode == XDP_ATTACHED_DRV; }

}  // namespace ballast::loader
