/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The far field by an octree: M2M upward, M2L on each level, L2L downward. */
#include "cuda/tree/far.h"

#include <algorithm>

#include "cuda/convolution/convolution.h"
#include "cuda/near/range.h"
#include "cuda/octree/state.h"
#include "cuda/runtime/copy_rows.h"
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
static gmxfmm_status far_field_of_cells(gmxfmm_plan* plan, bool virial, cudaEvent_t ready)
{
    const cudaStream_t        stream  = plan->device->schedule.far;
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

static const fmm_octree_level* leaves_of(const gmxfmm_plan* plan)
{
    return &plan->device->far.tree.level[plan->domain.tree->depth];
}

static size_t local_bytes(const gmxfmm_plan* plan)
{
    return static_cast<size_t>(plan->device->far.num_coef) * leaves_of(plan)->stride * real_size(plan);
}

/* The leaves of a device's range alone: other slabs end where they begin. M2L of them is that of all, tile by tile. */
static fmm_octree_level own_leaves(const gmxfmm_plan* plan, const fmm_device* d)
{
    const fmm_octree_level* all   = leaves_of(plan);
    fmm_octree_level        level = *all;
    level.tiles                   = rotation_tiles(all->slab);
    for (int c = 0; c <= c_octants; c++)
    {
        level.slab[c] = all->slab[std::min(std::max(c, d->range.first_octant), d->range.end_octant)];
    }
    return level;
}

static bool has_leaves(const gmxfmm_plan* plan, const fmm_device* d)
{
    return leaves_of(plan)->slab[d->range.end_octant] > leaves_of(plan)->slab[d->range.first_octant];
}

/* M2L of the leaves of another device than the first, which is the current one. It copies the multipoles of all leaves,
 * and stores the locals of its own in the first device's array. */
static gmxfmm_status enqueue_leaves(gmxfmm_plan* plan, const fmm_device* d)
{
    const DeviceTree *      first = &plan->device->far.tree, *tree = &d->far.tree;
    const fmm_octree_level* all        = leaves_of(plan);
    const cudaStream_t      stream     = d->schedule.far;
    const int               processors = d->limits.processors, depth = plan->domain.tree->depth;
    fmm_octree_level        lower = own_leaves(plan, d), upper = first->level[depth - 1];
    lower.parent         = tree->parent[depth].as<int>();
    lower.multipole      = tree->multipole[depth].memory;
    lower.local          = tree->local[depth].memory;
    upper.child          = tree->child[depth - 1].as<int>();
    upper.near           = tree->near[depth - 1].as<int>();
    const size_t   words = local_bytes(plan) / sizeof(uint4); /* rows end at multiples of 32 numbers */
    const RowsPart whole = {1, words, 0, words};
    const size_t   begin = static_cast<size_t>(lower.slab[0]), end = static_cast<size_t>(lower.slab[c_octants]);
    const RowsPart own = {static_cast<size_t>(plan->device->far.num_coef), all->stride, begin, end - begin};
    FMM_CUDA(plan, launch_copy_rows<uint4>(whole, all->multipole, lower.multipole, processors, stream));
    FMM_CUDA(plan, cudaMemsetAsync(lower.local, 0, local_bytes(plan), stream));
    FMM_TRY(fmm_cuda_tree_status(plan, tree, fmm_octree_m2l_rotation(tree->operators, &upper, &lower, stream)));
    FMM_CUDA(plan, is_double(plan) ? launch_copy_rows<double>(own, lower.local, all->local, processors, stream)
                                   : launch_copy_rows<float>(own, lower.local, all->local, processors, stream));
    return GMXFMM_OK;
}

/* Clears the locals of the leaves, and begins M2L of those of other devices behind P2M. The first device has M2M and
 * the levels above meanwhile. */
static gmxfmm_status begin_leaves(gmxfmm_plan* plan)
{
    const DeviceSchedule& first = plan->device->schedule;
    FMM_CUDA(plan, cudaMemsetAsync(leaves_of(plan)->local, 0, local_bytes(plan), first.far));
    FMM_CUDA(plan, shares_far(plan) ? cudaEventRecord(first.sent, first.far) : cudaSuccess);
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        const fmm_device*     d = &plan->device[k];
        const DeviceSchedule& s = d->schedule;
        DeviceScope           scope(d->id);
        if (has_leaves(plan, d))
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(s.far, first.sent, 0));
            FMM_TRY(enqueue_leaves(plan, d));
            FMM_CUDA(plan, cudaEventRecord(s.far_done, s.far));
        }
    }
    return GMXFMM_OK;
}

/* The locals of all leaves are there after it. */
static gmxfmm_status end_leaves(gmxfmm_plan* plan)
{
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        const fmm_device* d = &plan->device[k];
        FMM_CUDA(plan, has_leaves(plan, d) ? cudaStreamWaitEvent(plan->device->schedule.far, d->schedule.far_done, 0)
                                           : cudaSuccess);
    }
    return GMXFMM_OK;
}

/* Roots interact with each other and all images by the convolution over their grid, the arrays of which hold their
 * expansions. In an open system no root is far from another. */
static gmxfmm_status far_field(gmxfmm_plan* plan, bool virial, cudaEvent_t ready)
{
    const cudaStream_t stream = plan->device->schedule.far;
    if (fmm_is_adaptive(plan))
    {
        return far_field_of_cells(plan, virial, ready);
    }
    DeviceTree*             tree  = &plan->device->far.tree;
    const fmm_octree_level* level = tree->level;
    const int depth = plan->domain.tree->depth, first = first_level(plan), top = fmm_is_periodic(plan) ? 0 : first;
    const int last = tree->last;
    FMM_TRY(last >= first ? begin_leaves(plan) : GMXFMM_OK);
    for (int l = last - 1; l >= top; l--)
    {
        FMM_TRY(fmm_cuda_octree_status(plan, fmm_octree_m2m(tree->operators, &level[l], &level[l + 1], stream)));
    }
    if (virial)
    {
        FMM_CUDA(plan, cudaMemsetAsync(tree->strain.memory, 0, 6 * sizeof(double), stream));
    }
    if (fmm_is_periodic(plan))
    {
        FMM_TRY(fmm_cuda_convolve(plan, virial, ready));
    }
    else if (ready != NULL)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, ready, 0));
    }
    for (int l = first; l <= last; l++)
    {
        const size_t bytes = static_cast<size_t>(plan->device->far.num_coef) * level[l].stride * real_size(plan);
        const double scale = ldexp(1.0, l - depth); /* from this level's unit to that of the leaves */
        const fmm_octree_level lower = l == last ? own_leaves(plan, plan->device) : level[l];
        FMM_CUDA(plan, l < last ? cudaMemsetAsync(level[l].local, 0, bytes, stream) : cudaSuccess);
        FMM_TRY(fmm_cuda_octree_status(plan, variant(plan->far.m2l)(tree->operators, &level[l - 1], &lower, stream)));
        FMM_TRY(l == last ? end_leaves(plan) : GMXFMM_OK);
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

/* M2L of the leaves by rotations is what others can have. Levels of so few cells that their lists are divided among
 * blocks are not shared: such a step is over too soon. */
static bool can_share_leaves(const gmxfmm_plan* plan)
{
    return plan->far.m2l == GMXFMM_M2L_ROTATION && rotation_tiles(leaves_of(plan)->slab) > c_rotationSomeTiles &&
           rotation_holds_planes(plan->device->far.tree.operators, leaves_of(plan)->num);
}

static void release_levels(gmxfmm_plan* plan, DeviceTree* tree)
{
    for (int l = 0; l <= FMM_MAX_DEPTH; l++)
    {
        for (DeviceBuffer* buffer :
             {&tree->parent[l], &tree->child[l], &tree->near[l], &tree->multipole[l], &tree->local[l]})
        {
            fmm_device_release(plan, buffer);
        }
    }
}

static gmxfmm_status copy_list(gmxfmm_plan* plan, const fmm_device* to, DeviceBuffer* list, const DeviceBuffer& from)
{
    FMM_TRY(fmm_cuda_reserve_like(plan, to, list, from));
    return fmm_cuda_upload(plan, list->memory, from.memory, from.capacity);
}

/* Operators, lists and room for the leaves. */
static gmxfmm_status reserve_leaves(gmxfmm_plan* plan, fmm_device* d)
{
    const DeviceTree* first = &plan->device->far.tree;
    const int         depth = plan->domain.tree->depth;
    DeviceTree*       tree  = &d->far.tree;
    {
        DeviceScope scope(d->id);
        FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.far)); /* what a step that failed may have left */
        if (tree->operators == NULL || plan->device->group->far_arrays != plan->far.arrays)
        {
            release_levels(plan, tree); /* of another depth */
            FMM_TRY(fmm_cuda_make_operators(plan, d));
        }
        const gmxfmm_status status = fmm_octree_reserve(tree->operators, GMXFMM_M2L_ROTATION, leaves_of(plan)->num);
        fmm_cuda_count_operators(plan, tree);
        FMM_TRY(fmm_cuda_tree_status(plan, tree, status));
        if (!rotation_holds_planes(tree->operators, leaves_of(plan)->num))
        {
            return GMXFMM_ERROR_MEMORY;
        }
        FMM_TRY(fmm_device_reserve(plan, &tree->multipole[depth], local_bytes(plan)));
        FMM_TRY(fmm_device_reserve(plan, &tree->local[depth], local_bytes(plan)));
    }
    FMM_TRY(copy_list(plan, d, &tree->parent[depth], first->parent[depth]));
    FMM_TRY(copy_list(plan, d, &tree->child[depth - 1], first->child[depth - 1]));
    return copy_list(plan, d, &tree->near[depth - 1], first->near[depth - 1]);
}

static void release_leaves(gmxfmm_plan* plan, fmm_device* d)
{
    fmm_cuda_tree_destroy(d);
    fmm_cuda_count_operators(plan, &d->far.tree);
    release_levels(plan, &d->far.tree);
}

const DevicePath fmm_cuda_by_octree = {
    create,           set_shape,      fmm_cuda_tree_assign, far_field,      fmm_cuda_tree_expansions,
    can_share_leaves, reserve_leaves, release_leaves,       size_t(1) << 20};
