/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The near field on the device: P2P, its virial, and the excluded pairs among near ones. */
#ifndef FMM_CUDA_NEAR_H
#define FMM_CUDA_NEAR_H

#include "cuda/geometry.h"
#include "cuda/resources.h"

/* p2p.cu: near pairs of all targets. */
gmxfmm_status fmm_cuda_p2p(gmxfmm_plan* plan, const StepWanted& wanted, cudaStream_t stream);
/* The near virial's part of forces through faces of a grid of one level, from the positions alone. */
gmxfmm_status fmm_cuda_near_faces(gmxfmm_plan* plan, cudaStream_t stream);
/* Rows of device->near_virial: of P2P, one for each tile, on an octree; on other grids of the faces, and the sum over
 * particles of position times near force belongs to the virial, too. */
int fmm_cuda_near_virial_rows(const gmxfmm_plan* plan, int tiles);

/* near_set.cu: the near vectors of the plan's cells on the device. */
gmxfmm_status fmm_cuda_upload_near_set(gmxfmm_plan* plan);

/* excluded_pairs.cu: excluded pairs of the sorted particles, a particle and itself among them, near ones and far ones;
 * targets exclude nothing. */
gmxfmm_status fmm_cuda_excluded_pairs(gmxfmm_plan* plan, cudaStream_t stream);

#endif
