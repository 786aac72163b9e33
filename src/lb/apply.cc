// SPDX-License-Identifier: Apache-2.0
#include "lb/apply.h"

#include <algorithm>

namespace ballast::lb {
namespace {

template <typename Entries, typename View>
Result<> put_all(const Entries& entries, const View& view) {
  for (const auto& [key, value] : entries) {
    if (Result<> put = view.set(key, value); !put) return put;
  }
  return {};
}

}  // namespace

Result<> apply(const Writes& writes, const loader::LbProgram& program) {
  if (Result<> put = put_all(writes.owners, program.owners()); !put) return put;
  if (Result<> put = put_all(writes.instances, program.instances()); !put) return put;
  if (Result<> put = put_all(writes.ring_pages, program.ring_pages()); !put) return put;
  if (Result<> put = put_all(writes.couplings, program.couplings()); !put) return put;
  if (Result<> put = put_all(writes.tables, program.dispatch_tables()); !put) return put;
  if (Result<> put = put_all(writes.nat_sources, program.nat_sources()); !put) return put;
  if (Result<> put = put_all(writes.vips, program.vips()); !put) return put;
  for (const bl_vip_key& key : writes.removed) {
    const Result<bool> removed = program.vips().remove(key);
    if (!removed) return Unexpected(removed.error());
  }
  if (Result<> put = put_all(writes.gone, program.instances()); !put) return put;
  for (const bl_vip_key& key : writes.nat_removed) {
    const Result<bool> removed = program.nat_sources().remove(key);
    if (!removed) return Unexpected(removed.error());
  }
  return {};
}

Result<Former> read_former(const loader::LbProgram& program) {
  Former former;
  for (uint32_t i = 0; i < BL_MOST_INSTANCES; ++i) {
    const auto owner = program.owners().get(i);
    if (!owner) return Unexpected(owner.error());
    if (!*owner || (*owner)->vip.protocol == 0) continue;
    former.owners.emplace_back(i, **owner);
    const auto instance = program.instances().get(i);
    if (!instance) return Unexpected(instance.error());
    former.instances.emplace_back(i, instance->value_or(bl_instance{}));
  }
  const Result<> vips = program.vips().each(
      [&](const bl_vip_key& key, const bl_vip& vip) { former.vips.emplace_back(key, vip); });
  if (!vips) return Unexpected(vips.error());
  for (const auto& [key, vip] : former.vips) {
    if (key.protocol == 0) continue;
    const auto coupling = program.couplings().get(vip.table);
    if (!coupling) return Unexpected(coupling.error());
    if (!*coupling) continue;
    const size_t pages = ((*coupling)->ring_size + BL_RING_PAGE - 1) / BL_RING_PAGE;
    for (size_t i = 0; i < std::min<size_t>(pages, BL_RING_PAGES); ++i)
      former.ring_pages.push_back((*coupling)->pages[i]);
  }
  return former;
}

}  // namespace ballast::lb
