/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The near field on the device: P2P, its virial, and the excluded pairs among near ones. */
#ifndef FMM_CUDA_NEAR_H
#define FMM_CUDA_NEAR_H

#include "cuda/geometry.h"
#include "cuda/near/range.h"
#include "cuda/resources.h"

/* p2p.cu: near pairs of the targets of a device, which is the current one, into the first device's arrays. */
gmxfmm_status fmm_cuda_p2p(gmxfmm_plan* plan, fmm_device* device, const StepWanted& wanted, cudaStream_t stream);

/* Forces by all tiles on the plan's first device, whatever others have: a load for measurements. */
gmxfmm_status fmm_cuda_p2p_all(gmxfmm_plan* plan, cudaStream_t stream);
/* The part of the near virial due to forces through the faces of the box, for cells of one level; it needs the
 * positions only. */
gmxfmm_status fmm_cuda_near_faces(gmxfmm_plan* plan, cudaStream_t stream);
/* Rows of device->near.virial. On an octree, and where fmm_has_given, P2P writes one for each tile. With other cells
 * of one level near_faces writes them, and the sum over particles of position times near force is to be added. */
int fmm_cuda_near_virial_rows(const gmxfmm_plan* plan, int tiles);
/* Room for them: where P2P writes one for each tile, for as many as there are tiles now or can be after an assignment
 * enqueued on a stream. */
gmxfmm_status fmm_cuda_reserve_near_virial(gmxfmm_plan* plan);

/* Positions and box that P2P takes: the caller's numbers where these have more digits. */
static inline const DeviceBuffer& pair_positions(const gmxfmm_plan* plan, const ParticleSet& set)
{
    return fmm_has_given(plan) ? set.given : set.xq;
}

static inline const DeviceBuffer& pair_box(const gmxfmm_plan* plan, const DeviceDomain& domain)
{
    return fmm_has_given(plan) ? domain.no_box : domain.box;
}

/* near_set.cu: the near vectors of the plan's cells on the device. */
gmxfmm_status fmm_cuda_upload_near_set(gmxfmm_plan* plan);
void          fmm_cuda_destroy_near_set(fmm_device* device);

/* excluded_pairs.cu: near and far excluded pairs of the sorted particles, each particle with itself among them. Targets
 * of their own exclude nothing. */
gmxfmm_status fmm_cuda_excluded_pairs(gmxfmm_plan* plan, cudaStream_t stream);

/* excluded_pairs.cu: room for them at any assignment of the plan's particles; room for copies of them and the near
 * set on another device; and as fmm_cuda_assigned_particles and what follows it, of the excluded pairs. */
gmxfmm_status fmm_cuda_reserve_excluded_pairs(gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_reserve_near_copies(gmxfmm_plan* plan, fmm_device* to);
DeviceBuffer* fmm_cuda_assigned_pairs(fmm_device* device, int i);
gmxfmm_status fmm_cuda_reserve_next_pairs(gmxfmm_plan* plan);
void          fmm_cuda_swap_pairs(fmm_device* device);

#endif
