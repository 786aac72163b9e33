// SPDX-License-Identifier: Apache-2.0
#include "loader/shapes.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <decap.skel.h>
#include <lb.skel.h>

#include <cerrno>
#include <string_view>

namespace ballast::loader {
namespace {

void add_maps(const bpf_object* object, std::vector<MapShape>& shapes) {
  const bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    if (bpf_map__is_internal(map)) continue;
    shapes.push_back({bpf_map__name(map), bpf_map__key_size(map), bpf_map__value_size(map),
                      bpf_map__max_entries(map)});
  }
}

}  // namespace

Result<std::vector<MapShape>> map_shapes() {
  std::vector<MapShape> shapes;
  LbSkeleton* lb = LbSkeleton__open();
  DecapSkeleton* decap = DecapSkeleton__open();
  const int error = errno;
  if (lb) add_maps(lb->obj, shapes);
  if (decap) add_maps(decap->obj, shapes);
  const bool is_complete = lb && decap;
  LbSkeleton__destroy(lb);
  DecapSkeleton__destroy(decap);
  if (!is_complete) return fail_errno("read the compiled programs", error);
  return shapes;
}

Result<std::vector<FieldShape>> field_shapes() {
  LbSkeleton* lb = LbSkeleton__open();
  if (!lb) return fail_errno("read the compiled program", errno);
  std::vector<FieldShape> shapes;
  const btf* types = bpf_object__btf(lb->obj);
  for (uint32_t id = 1; types && id < btf__type_cnt(types); ++id) {
    const btf_type* type = btf__type_by_id(types, id);
    const std::string name = btf__name_by_offset(types, type->name_off);
    if (!btf_is_struct(type) || !name.starts_with("bl_")) continue;
    for (uint16_t i = 0; i < btf_vlen(type); ++i)
      shapes.push_back({name, btf__name_by_offset(types, btf_members(type)[i].name_off),
                        btf_member_bit_offset(type, i) / 8});
    shapes.push_back({name, "", type->size});
  }
  LbSkeleton__destroy(lb);
  return shapes;
}

}  // namespace ballast::loader
