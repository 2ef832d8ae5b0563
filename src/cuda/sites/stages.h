/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a search and a step are made of. */
#ifndef CUDA_SITES_STAGES_H
#define CUDA_SITES_STAGES_H

#include "cuda/sites/state.h"

/* Sorts sites and makes their bounding boxes; nothing waits. Memory of create. (sort.cu) */
gmxfmm_status sites_sort(gmxfmm_sites* sites, const float* x, double reach, cudaStream_t stream);
gmxfmm_status sites_sort_memory(gmxfmm_sites* sites);
/* Makes the lists as far as there is room, and counts; nothing waits. (lists.cu) */
gmxfmm_status sites_make_lists(gmxfmm_sites* sites, double reach, cudaStream_t stream);
/* The forces on sites, and the rows of sums of tiles if wanted. The kernel before wrote the positions. (pairs.cu) */
gmxfmm_status sites_pairs(gmxfmm_sites* sites, bool with_energy, cudaStream_t stream);

/* Of the table of the backend. (step.cu) */
gmxfmm_status sites_cuda_enqueue(gmxfmm_sites* sites, const void* x, double* sums, void* stream);
gmxfmm_status sites_cuda_enqueue_forces(gmxfmm_sites* sites, void* f, void* stream);

#endif
