// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What lets a header be C11 for the kernel's programs and C++20 for ours.
#pragma once

#include <linux/types.h>
#include <stddef.h>

#ifdef __cplusplus
#define BL_CAST(type, value) (static_cast<type>(value))
#define BL_ASSERT(condition) static_assert(condition)
#else
#define BL_CAST(type, value) ((type)(value))
#define BL_ASSERT(condition) _Static_assert(condition, #condition)
#endif

// A static function that a kernel program may leave unused.
#define BL_INLINE static inline __attribute__((always_inline, unused))
