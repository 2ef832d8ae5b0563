/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Leaves of several levels on the device (tree.h), and their expansions. */
#ifndef FMM_CUDA_OCTREE_LEAVES_H
#define FMM_CUDA_OCTREE_LEAVES_H

#include "cuda/geometry.h"
#include "cuda/resources.h"

/* Sorts particles, at x on the device, and targets along Morton's curve, and finds the cells of all levels, the leaves,
 * what is near to these, and in which of them particles are. Waits for the stream. Errors: POSITION, MEMORY,
 * UNSUPPORTED. */
gmxfmm_status fmm_cuda_find_leaves(gmxfmm_plan* plan, const void* x, cudaStream_t stream);

/* Cells, leaves or runs that there is to be room for: an eighth more than there are, as their number changes with every
 * assignment. */
static inline size_t fmm_cuda_with_room(int num)
{
    return static_cast<size_t>(num) + static_cast<size_t>(num) / 8;
}

/* Room for the expansions of the leaves, and for positions in their units. */
gmxfmm_status fmm_cuda_reserve_leaves(gmxfmm_plan* plan);

/* Those of P2M and L2P. */
Expansions fmm_cuda_leaves_expansions(const gmxfmm_plan* plan);

/* Multipoles from the leaves to those cells that are leaves; locals from these to the leaves. */
gmxfmm_status fmm_cuda_leaves_to_cells(gmxfmm_plan* plan, cudaStream_t stream);
gmxfmm_status fmm_cuda_cells_to_leaves(gmxfmm_plan* plan, cudaStream_t stream);

/* Far fields of the targets from the unit of their leaves to u; gradient: that of the field, too. */
gmxfmm_status fmm_cuda_from_leaf_units(gmxfmm_plan* plan, bool gradient, cudaStream_t stream);

#endif
