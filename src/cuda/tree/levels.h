/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The octree of a plan on the device: operators, and the levels for the assigned particles. */
#ifndef FMM_CUDA_OCTREE_LEVELS_H
#define FMM_CUDA_OCTREE_LEVELS_H

#include "cuda/geometry.h"
#include "cuda/resources.h"

/* Operators for the present order and lists, and for the present shape. */
gmxfmm_status fmm_cuda_tree_create(gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_tree_set_shape(gmxfmm_plan* plan);
void          fmm_cuda_tree_destroy(fmm_device* device);

/* On a device, which is the current one: loads or compiles the kernels of m2l = rotation for this order, unless it has
 * them; operators for the present order and lists, with these kernels; and adds changes of the operators' memory to
 * plan->bytes. */
gmxfmm_status fmm_cuda_rotation_create(gmxfmm_plan* plan, fmm_device* device, int order);
gmxfmm_status fmm_cuda_make_operators(gmxfmm_plan* plan, fmm_device* device);
void          fmm_cuda_count_operators(gmxfmm_plan* plan, DeviceTree* tree);

/* Makes the levels and leaves for the sorted particles. */
gmxfmm_status fmm_cuda_tree_assign(gmxfmm_plan* plan, cudaStream_t stream);
Expansions    fmm_cuda_tree_expansions(const gmxfmm_plan* plan);

/* The plan's status and message from what a call of octree/operators.h returned, for a device or the first. */
gmxfmm_status fmm_cuda_tree_status(gmxfmm_plan* plan, const DeviceTree* tree, gmxfmm_status status);
gmxfmm_status fmm_cuda_octree_status(gmxfmm_plan* plan, gmxfmm_status status);

#endif
