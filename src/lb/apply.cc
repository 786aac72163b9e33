// SPDX-License-Identifier: Apache-2.0
#include "lb/apply.h"

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
  if (Result<> put = put_all(writes.instances, program.instances()); !put) return put;
  if (Result<> put = put_all(writes.tables, program.dispatch_tables()); !put) return put;
  if (Result<> put = put_all(writes.vips, program.vips()); !put) return put;
  for (const bl_vip_key& key : writes.removed) {
    const Result<bool> removed = program.vips().remove(key);
    if (!removed) return Unexpected(removed.error());
  }
  return {};
}

}  // namespace ballast::lb
