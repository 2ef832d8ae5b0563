/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The far field by an octree: M2M upward, M2L on each level, L2L downward. */
#include "cuda/tree/far.h"

#include "cuda/convolution/convolution.h"
#include "cuda/devices/leaf_parts.h"
#include "cuda/tree/leaves.h"
#include "cuda/tree/levels.h"

static fmm_octree_m2l* variant(gmxfmm_m2l m2l)
{
    switch (m2l)
    {
    case GMXFMM_M2L_NAIVE:
        return fmm_octree_m2l_naive;
    case GMXFMM_M2L_DYNAMIC:
        return fmm_octree_m2l_dynamic;
    case GMXFMM_M2L_SYMMETRIC:
        return fmm_octree_m2l_symmetric;
    default:
        return fmm_octree_m2l_rotation;
    }
}

/* The first level whose cells have an interaction list; roots interact by the convolution. */
static int first_level(const gmxfmm_plan* plan)
{
    const int* roots = plan->domain.tree->roots;
    int        l     = 1;
    if (!fmm_is_periodic(plan))
    {
        while (l < plan->domain.tree->depth && roots[0] << l <= plan->domain.separation + 1 &&
               roots[1] << l <= plan->domain.separation + 1 && roots[2] << l <= plan->domain.separation + 1)
        {
            l++; /* on this level all cells are near each other */
        }
    }
    return l;
}

/* With leaves of several levels, in an open system. The cells of all levels are in one array, so that one launch has
 * M2L of all of them; levels above the first have no locals. */
static gmxfmm_status far_field_of_cells(gmxfmm_plan* plan, bool virial, cudaEvent_t ready, cudaStream_t stream)
{
    DeviceTree*               tree    = &plan->device->far.tree;
    fmm_octree_operators*     ops     = tree->operators;
    const fmm_octree_level*   all     = &tree->level[0];
    const fmm_octree_parents* parents = &tree->parents;
    double*                   strain  = tree->strain.as<double>();
    const size_t              bytes   = static_cast<size_t>(plan->device->far.num_coef) * all->stride * real_size(plan);
    const int                 first = first_level(plan), last = tree->last;
    if (virial)
    {
        FMM_CUDA(plan, cudaMemsetAsync(strain, 0, 6 * sizeof(double), stream));
    }
    FMM_CUDA(plan, cudaMemsetAsync(all->local, 0, bytes, stream));
    if (last >= first)
    {
        FMM_TRY(fmm_cuda_leaves_to_cells(plan, stream));
        FMM_TRY(fmm_cuda_octree_status(plan, fmm_octree_m2m_sweep(ops, all, parents, first, last - 1, stream)));
        FMM_TRY(fmm_cuda_octree_status(plan, variant(plan->far.m2l)(ops, all, all, stream)));
        FMM_TRY(fmm_cuda_octree_status(plan, fmm_octree_l2l_sweep(ops, all, parents, first, last - 1, stream)));
    }
    if (last >= first && virial)
    {
        FMM_TRY(fmm_cuda_octree_status(plan, fmm_octree_m2l_strain(ops, all, all, 1, strain, stream)));
        FMM_TRY(fmm_cuda_octree_status(plan, fmm_octree_l2l_strain(ops, all, all, 1, strain, stream)));
    }
    if (ready != NULL)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, ready, 0));
    }
    return fmm_cuda_cells_to_leaves(plan, stream);
}

/* Roots interact with each other and all images by the convolution over their grid, the arrays of which hold their
 * expansions. In an open system no root is far from another. */
static gmxfmm_status far_field(gmxfmm_plan* plan, bool virial, cudaEvent_t ready, cudaStream_t stream)
{
    if (fmm_is_adaptive(plan))
    {
        return far_field_of_cells(plan, virial, ready, stream);
    }
    DeviceTree*             tree  = &plan->device->far.tree;
    const fmm_octree_level* level = tree->level;
    const int  depth = plan->domain.tree->depth, first = first_level(plan), top = fmm_is_periodic(plan) ? 0 : first;
    const int  last   = tree->last;
    const bool shared = has_leaf_parts(plan);
    if (shared)
    {
        FMM_TRY(fmm_cuda_begin_leaf_parts(plan, stream));
    }
    for (int l = last; l >= top; l--)
    {
        if (l < last)
        {
            FMM_TRY(fmm_cuda_octree_status(plan, fmm_octree_m2m(tree->operators, &level[l], &level[l + 1], stream)));
        }
    }
    if (virial)
    {
        FMM_CUDA(plan, cudaMemsetAsync(tree->strain.memory, 0, 6 * sizeof(double), stream));
    }
    if (fmm_is_periodic(plan))
    {
        FMM_TRY(fmm_cuda_convolve(plan, virial, ready, stream));
    }
    else if (ready != NULL)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, ready, 0));
    }
    for (int l = first; l <= last; l++)
    {
        const size_t bytes = static_cast<size_t>(plan->device->far.num_coef) * level[l].stride * real_size(plan);
        const double scale = ldexp(1.0, l - depth); /* from this level's unit to that of the leaves */
        const bool   parts = shared && l == last;
        const fmm_octree_level lower = parts ? fmm_cuda_own_leaves(plan) : level[l];
        if (!parts)
        {
            FMM_CUDA(plan, cudaMemsetAsync(level[l].local, 0, bytes, stream));
        }
        FMM_TRY(fmm_cuda_octree_status(plan, variant(plan->far.m2l)(tree->operators, &level[l - 1], &lower, stream)));
        if (parts)
        {
            FMM_TRY(fmm_cuda_end_leaf_parts(plan, stream));
        }
        if (l > top)
        {
            FMM_TRY(fmm_cuda_octree_status(plan, fmm_octree_l2l(tree->operators, &level[l - 1], &level[l], stream)));
        }
        if (virial)
        {
            double* strain = tree->strain.as<double>();
            FMM_TRY(fmm_cuda_octree_status(
                plan, fmm_octree_m2l_strain(tree->operators, &level[l - 1], &level[l], scale, strain, stream)));
        }
        if (virial && l > top)
        {
            double* strain = tree->strain.as<double>();
            FMM_TRY(fmm_cuda_octree_status(
                plan, fmm_octree_l2l_strain(tree->operators, &level[l - 1], &level[l], scale, strain, stream)));
        }
    }
    return GMXFMM_OK;
}

/* Periodic systems get transforms and lattice sums for the roots; in an open system no root is far from another. */
static gmxfmm_status create(gmxfmm_plan* plan)
{
    FMM_TRY(fmm_cuda_tree_create(plan));
    return fmm_is_periodic(plan) ? fmm_cuda_set_transforms(plan) : GMXFMM_OK;
}

static gmxfmm_status set_shape(gmxfmm_plan* plan)
{
    FMM_TRY(fmm_cuda_tree_set_shape(plan));
    return fmm_is_periodic(plan) ? fmm_cuda_set_lattice(plan) : GMXFMM_OK;
}

const DevicePath fmm_cuda_by_octree = {
    create, set_shape, fmm_cuda_tree_assign, far_field, fmm_cuda_tree_expansions, size_t(1) << 20};
