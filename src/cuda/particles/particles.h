/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles of a plan on the device: arrays of a caller, charges, sorting into cells, positions in the cells' frames.
 */
#ifndef FMM_CUDA_PARTICLES_H
#define FMM_CUDA_PARTICLES_H

#include "cuda/geometry.h"
#include "cuda/resources.h"

/* arrays.cu: room for the plan's sources. */
gmxfmm_status fmm_cuda_reserve_sources(gmxfmm_plan* plan);

/* arrays.cu: makes *x, positions of all particles on the host or a device, an address of the plan's device. */
gmxfmm_status fmm_cuda_on_device(gmxfmm_plan* plan, const void** x);

/* sort.cu: exclusive sums of `num` numbers, at most as many as there are cells or particles, and one. */
gmxfmm_status fmm_cuda_scan(gmxfmm_plan* plan, const int* in, int* out, int num, cudaStream_t stream);
gmxfmm_status fmm_cuda_scan(gmxfmm_plan* plan, const uint64_t* in, uint64_t* out, int num, cudaStream_t stream);

/* sort.cu: memory for any assignment to the present cells, so that those that follow on a stream find all they can
 * need; the most tiles that a set can then have. */
gmxfmm_status fmm_cuda_reserve_sort(gmxfmm_plan* plan);
int           fmm_cuda_most_tiles(const gmxfmm_plan* plan, const ParticleSet* set);

/* sort.cu: sorts sources, at x on the device, or targets into cells and tiles; waited for, the number of tiles is
 * known. Errors: POSITION, DEVICE. */
gmxfmm_status fmm_cuda_sort_sources(gmxfmm_plan* plan, const void* x, cudaStream_t stream);
gmxfmm_status fmm_cuda_sort_and_wait(gmxfmm_plan* plan, const void* x);

/* permute.cu: positions into cells' frames; the moments that a virial or vacuum around the box needs. */
gmxfmm_status fmm_cuda_permute(gmxfmm_plan* plan, const void* x, cudaStream_t stream);
gmxfmm_status fmm_cuda_moments(gmxfmm_plan* plan, const void* x, cudaStream_t stream);

#endif
