/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The two paths through the far field, by cells of one level and by an octree. */
#include "cuda/state.h"

static gmxfmm_status create_cells(gmxfmm_plan* plan)
{
    FMM_TRY(fmm_cuda_p2m_reserve(plan));
    return fmm_cuda_set_transforms(plan);
}

static Expansions expansions_of_cells(const gmxfmm_plan* plan)
{
    const fmm_device* d = plan->device;
    Expansions        far;
    far.leaves.num    = plan->domain.cells.num_cells;
    far.leaves.edge   = 1;
    far.leaves.stride = static_cast<size_t>(far.leaves.num);
    far.leaves.cell   = NULL;
    far.multipole     = d->field.memory;
    far.local         = d->field.memory;
    far.strain        = NULL;
    return far;
}

/* Roots have transforms and sums where they have images; in an open system no root is far from another. */
static gmxfmm_status create_octree(gmxfmm_plan* plan)
{
    FMM_TRY(fmm_cuda_tree_create(plan));
    return fmm_is_periodic(plan) ? fmm_cuda_set_transforms(plan) : GMXFMM_OK;
}

static gmxfmm_status set_shape_of_octree(gmxfmm_plan* plan)
{
    FMM_TRY(fmm_cuda_tree_set_shape(plan));
    return fmm_is_periodic(plan) ? fmm_cuda_set_lattice(plan) : GMXFMM_OK;
}

static const DevicePath c_cells = {create_cells,      fmm_cuda_set_lattice, NULL,
                                   fmm_cuda_convolve, expansions_of_cells,  size_t(4) << 20};

static const DevicePath c_octree = {create_octree,     set_shape_of_octree,      fmm_cuda_tree_assign,
                                    fmm_cuda_far_tree, fmm_cuda_tree_expansions, size_t(1) << 20};

const DevicePath* fmm_cuda_path(const gmxfmm_plan* plan)
{
    return plan->domain.tree != NULL ? &c_octree : &c_cells;
}
