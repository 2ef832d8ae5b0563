/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls of sums.c, compiled for each level of x86-64: those of the level that the treecode was made with. */
#include "fmm/treecode/state.h"

#define DEFINE(real)                                                                                                   \
    size_t treecode_sums_scratch_##real##_v2(const treecode* t);                                                       \
    size_t treecode_sums_scratch_##real##_v3(const treecode* t);                                                       \
    size_t treecode_sums_scratch_##real##_v4(const treecode* t);                                                       \
    void   treecode_sums_##real##_v2(treecode* t, const treecode_lists* lists, int with_field);                        \
    void   treecode_sums_##real##_v3(treecode* t, const treecode_lists* lists, int with_field);                        \
    void   treecode_sums_##real##_v4(treecode* t, const treecode_lists* lists, int with_field);                        \
    size_t treecode_sums_scratch_##real(const treecode* t)                                                             \
    {                                                                                                                  \
        return t->level == 4   ? treecode_sums_scratch_##real##_v4(t)                                                  \
               : t->level == 3 ? treecode_sums_scratch_##real##_v3(t)                                                  \
                               : treecode_sums_scratch_##real##_v2(t);                                                 \
    }                                                                                                                  \
    void treecode_sums_##real(treecode* t, const treecode_lists* lists, int with_field)                                \
    {                                                                                                                  \
        t->level == 4   ? treecode_sums_##real##_v4(t, lists, with_field)                                              \
        : t->level == 3 ? treecode_sums_##real##_v3(t, lists, with_field)                                              \
                        : treecode_sums_##real##_v2(t, lists, with_field);                                             \
    }

DEFINE(f)
DEFINE(d)
