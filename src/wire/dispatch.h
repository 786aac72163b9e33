// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The choice of an instance by weight, in two stages, for the packet path and for every model of
// it: there is no other. Spotlight, arXiv 1806.08455.
#pragma once

#include "wire/language.h"

struct bl_dispatch_class {
  __u32 below;  // draws under this, and not under the class before's, are this class's
  __u32 first;  // of its members
  __u32 size;   // of its members, not 0
};
BL_ASSERT(sizeof(struct bl_dispatch_class) == 12);

// Two independent hashes of a flow, one for each stage.
struct bl_flow_hash {
  __u32 of_class;
  __u32 of_member;
};

// A uniform 32-bit value to [0, n).
BL_INLINE __u32 bl_scale(__u32 value, __u32 n) {
  return BL_CAST(__u32, (BL_CAST(__u64, value) * n) >> 32);
}

// Position among the members, which are ordered by class. `count` classes, at least 1; `total` is
// the last one's `below`.
BL_INLINE __u32 bl_dispatch(const struct bl_dispatch_class* classes, __u32 count, __u32 total,
                            struct bl_flow_hash hash) {
  const __u32 draw = bl_scale(hash.of_class, total);
  __u32 i = 0;
  while (i + 1 < count && !(draw < classes[i].below)) ++i;
  return classes[i].first + bl_scale(hash.of_member, classes[i].size);
}
