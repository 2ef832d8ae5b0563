/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * M2L of an octree's leaves by rotations on several devices of the process.
 *
 * Leaves are in slabs by child index (tree.h), about an eighth of them in each. A part (parts.h) has whole slabs,
 * so its targets are a range of leaves, and the tiles of 32 targets are those of one device. In a step it copies the
 * multipoles of all leaves, and stores the locals of its own in the first device's array. All other stages are the
 * first device's, which has M2M, the levels above and its own slabs meanwhile. Nothing about a target depends on where
 * it is computed; so bits do not, either.
 *
 * Levels of so few cells that their lists are divided among blocks are not shared: such a step is over too soon.
 */
#ifndef FMM_CUDA_LEAF_PARTS_H
#define FMM_CUDA_LEAF_PARTS_H

#include "cuda/near/range.h"
#include "cuda/resources.h"

/* Whether the octree as it was assigned can be shared. */
bool fmm_cuda_can_share_leaves(const gmxfmm_plan* plan);

/* Operators, lists and room on the other devices for the octree as it was assigned, if it is shared or may be. A device
 * that has no memory for that leaves all of it to the first, and is named in the note. Waits. Errors: DEVICE, and as
 * fmm_rotation_create. */
gmxfmm_status fmm_cuda_reserve_leaf_parts(gmxfmm_plan* plan);

/* Gives all of that back. Waits. Errors: DEVICE. */
gmxfmm_status fmm_cuda_release_leaf_parts(gmxfmm_plan* plan);

/* Shares of M2L, in eighths; and that of part k. */
void   fmm_cuda_set_leaf_parts(gmxfmm_plan* plan, const double* share);
double fmm_cuda_share_of_leaves(const gmxfmm_plan* plan, int k);

/* Tables for another shape of the box. Waits. Errors: DEVICE, MEMORY. */
gmxfmm_status fmm_cuda_set_shape_of_leaf_parts(gmxfmm_plan* plan);

/* The first device's leaves. */
fmm_octree_level fmm_cuda_own_leaves(const gmxfmm_plan* plan);

/* M2L of the other parts, behind P2M, which is before in the stream, on streams of their own; locals of all leaves are
 * cleared. The first device adds to its own ones in between. After the second call all are there. */
gmxfmm_status fmm_cuda_begin_leaf_parts(gmxfmm_plan* plan, cudaStream_t stream);
gmxfmm_status fmm_cuda_end_leaf_parts(gmxfmm_plan* plan, cudaStream_t stream);

#endif
