/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The near field on several devices of the process; slabs.h has the far field.
 *
 * Tiles are in the order of cells, x slowest, so a range of them is a slab of the system. Each part has such a range on
 * its device: the first part is what is left to the plan's own device, the others copy in each step the positions of
 * their layers and of those that are near, and P2P stores their sums straight into the first device's arrays. Nothing
 * about a tile depends on where it is computed, so that the bits do not depend on the number of parts or their shares.
 *
 * Kernels of a part read and write the first device's memory, not the other way round: all copies of the near field are
 * theirs.
 */
#ifndef FMM_CUDA_PARTS_H
#define FMM_CUDA_PARTS_H

#include "cuda/near/range.h"
#include "cuda/resources.h"

/* The devices of the options that can reach the first one's memory, and access of all to all as far as there is; they
 * have numbers, but no streams yet. Errors: DEVICE, MEMORY. */
gmxfmm_status fmm_cuda_create_group(gmxfmm_plan* plan);
void          fmm_cuda_destroy_group(gmxfmm_plan* plan);

/* Room on the other devices for any assignment to the present cells, and shares to begin with. Waits for the devices.
 */
gmxfmm_status fmm_cuda_reserve_parts(gmxfmm_plan* plan);

/* The number of warps, from the shares and the number of tiles launched on the first device. */
void fmm_cuda_set_warps(fmm_device* first);

/* Copies an assignment to the other devices, behind what is in the stream and before what follows. */
gmxfmm_status fmm_cuda_assign_parts(gmxfmm_plan* plan, cudaStream_t stream);

/* The stages of a step on other devices, behind `fork` of the plan's: near field, and positions for their far field;
 * and what follows their transforms, all before what follows in the stream. */
gmxfmm_status fmm_cuda_begin_parts(gmxfmm_plan* plan, const StepWanted& wanted, unsigned stages);
gmxfmm_status fmm_cuda_end_parts(gmxfmm_plan* plan, const StepWanted& wanted, unsigned stages, cudaStream_t stream);

/* Whether shares are wanted anew for the particles and settings as they are. */
bool fmm_cuda_shares_are_old(const gmxfmm_plan* plan);

/* Room on the other devices for their part of a far field that can be shared, if it is shared or that is still to be
 * measured; otherwise, and where a device has none, which the note then names, what there is is released. *arrays: the
 * version that there is room for. */
gmxfmm_status fmm_cuda_reserve_far(gmxfmm_plan* plan,
                                   bool         can,
                                   int64_t*     arrays,
                                   gmxfmm_status (*reserve)(gmxfmm_plan*, fmm_device*),
                                   gmxfmm_status (*release)(gmxfmm_plan*));

#endif
