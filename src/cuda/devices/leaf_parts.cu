/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2L of an octree's leaves on several devices: memory, shares, and the order in which devices wait for each other. */
#include "cuda/devices/leaf_parts.h"

#include <algorithm>

#include "cuda/devices/parts.h"
#include "cuda/octree/state.h"
#include "cuda/runtime/copy_rows.h"

enum
{
    c_slabs = 8
};

static inline const fmm_octree_level* leaves_of(const gmxfmm_plan* plan)
{
    return &plan->device->far.tree.level[plan->domain.tree->depth];
}

static inline size_t local_bytes(const gmxfmm_plan* plan)
{
    return static_cast<size_t>(plan->device->far.num_coef) * leaves_of(plan)->stride * real_size(plan);
}

bool fmm_cuda_can_share_leaves(const gmxfmm_plan* plan)
{
    const fmm_device* d = plan->device;
    return has_parts(d) && d->parts->connected && d->parts->no_room != plan->far.arrays && plan->domain.tree != NULL &&
           plan->far.m2l == GMXFMM_M2L_ROTATION && rotation_tiles(leaves_of(plan)->slab) > c_rotationSomeTiles &&
           rotation_holds_planes(d->far.tree.operators, leaves_of(plan)->num);
}

/* Adds changes of the operators' memory to plan->bytes. */
static void count_bytes(gmxfmm_plan* plan, SharedLeaves* leaves)
{
    const size_t bytes = leaves->operators != NULL ? fmm_octree_bytes(leaves->operators) : 0;
    plan->bytes += bytes - leaves->operator_bytes;
    leaves->operator_bytes = bytes;
}

static gmxfmm_status checked(gmxfmm_plan* plan, const SharedLeaves* leaves, gmxfmm_status status)
{
    return status == GMXFMM_OK ? status
                               : fmm_fail(plan, status, "%s",
                                          leaves->operators != NULL ? fmm_octree_message(leaves->operators)
                                                                    : "out of memory for an octree");
}

/* Operators and kernels for the current device. */
static gmxfmm_status make_operators(gmxfmm_plan* plan, SharedLeaves* leaves)
{
    char      message[sizeof(plan->message)];
    const int order = plan->far.order;
    fmm_octree_destroy(leaves->operators);
    leaves->operators = NULL;
    const gmxfmm_status status =
        fmm_octree_create(&leaves->operators, plan->domain.tree, &plan->domain.cells, order, is_double(plan));
    FMM_TRY(checked(plan, leaves, status));
    if (!fmm_rotation_is_for(leaves->rotation, order, is_double(plan)))
    {
        fmm_rotation_destroy(leaves->rotation);
        const gmxfmm_status made = fmm_rotation_create(&leaves->rotation, order, is_double(plan),
                                                       plan->options.cache_dir, message, sizeof(message));
        if (made != GMXFMM_OK)
        {
            return fmm_fail(plan, made, "%s", message);
        }
    }
    fmm_octree_set_rotation(leaves->operators, leaves->rotation);
    return GMXFMM_OK;
}

static gmxfmm_status reserve_part(gmxfmm_plan* plan, DevicePart* part)
{
    const DeviceTree* tree   = &plan->device->far.tree;
    const int         depth  = plan->domain.tree->depth;
    SharedLeaves*     leaves = &part->leaves;
    {
        DeviceScope scope(part->id);
        FMM_CUDA(plan, cudaStreamSynchronize(part->far.stream)); /* what a step that failed may have left */
        if (leaves->operators == NULL || plan->device->parts->leaf_arrays != plan->far.arrays)
        {
            FMM_TRY(make_operators(plan, leaves));
        }
        const gmxfmm_status status = fmm_octree_reserve(leaves->operators, GMXFMM_M2L_ROTATION, leaves_of(plan)->num);
        count_bytes(plan, leaves);
        FMM_TRY(checked(plan, leaves, status));
        if (!rotation_holds_planes(leaves->operators, leaves_of(plan)->num))
        {
            return GMXFMM_ERROR_MEMORY;
        }
        FMM_TRY(fmm_device_reserve(plan, &leaves->parent, tree->parent[depth].capacity));
        FMM_TRY(fmm_device_reserve(plan, &leaves->child, tree->child[depth - 1].capacity));
        FMM_TRY(fmm_device_reserve(plan, &leaves->near, tree->near[depth - 1].capacity));
        FMM_TRY(fmm_device_reserve(plan, &leaves->multipole, local_bytes(plan)));
        FMM_TRY(fmm_device_reserve(plan, &leaves->local, local_bytes(plan)));
    }
    FMM_TRY(fmm_cuda_upload(plan, leaves->parent.memory, tree->parent[depth].memory, tree->parent[depth].capacity));
    FMM_TRY(
        fmm_cuda_upload(plan, leaves->child.memory, tree->child[depth - 1].memory, tree->child[depth - 1].capacity));
    return fmm_cuda_upload(plan, leaves->near.memory, tree->near[depth - 1].memory, tree->near[depth - 1].capacity);
}

gmxfmm_status fmm_cuda_release_leaf_parts(gmxfmm_plan* plan)
{
    DeviceParts* parts = plan->device->parts;
    FMM_CUDA(plan, cudaStreamSynchronize(plan->device->schedule.own));
    parts->leaf_arrays = 0;
    for (int k = 1; k < parts->num; k++)
    {
        SharedLeaves* leaves = &parts->part[k].leaves;
        DeviceScope   scope(parts->part[k].id);
        FMM_CUDA(plan, cudaStreamSynchronize(parts->part[k].far.stream));
        fmm_octree_destroy(leaves->operators);
        fmm_rotation_destroy(leaves->rotation);
        leaves->operators = NULL;
        leaves->rotation  = NULL;
        count_bytes(plan, leaves);
        for (DeviceBuffer* buffer :
             {&leaves->parent, &leaves->child, &leaves->near, &leaves->multipole, &leaves->local})
        {
            fmm_device_release(plan, buffer);
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_reserve_leaf_parts(gmxfmm_plan* plan)
{
    DeviceParts* parts = plan->device->parts;
    if (!fmm_cuda_can_share_leaves(plan) || !fmm_cuda_may_share_far(plan))
    {
        return parts->leaf_arrays != 0 ? fmm_cuda_release_leaf_parts(plan) : GMXFMM_OK;
    }
    for (int k = 1; k < parts->num; k++)
    {
        const gmxfmm_status status = reserve_part(plan, &parts->part[k]);
        if (status == GMXFMM_ERROR_MEMORY)
        {
            fmm_cuda_has_no_room(plan, parts->part[k].id);
            return fmm_cuda_release_leaf_parts(plan);
        }
        FMM_TRY(status);
    }
    parts->leaf_arrays = plan->far.arrays;
    return GMXFMM_OK;
}

void fmm_cuda_set_leaf_parts(gmxfmm_plan* plan, const double* share)
{
    DeviceParts* parts = plan->device->parts;
    const bool   can   = fmm_cuda_can_share_leaves(plan);
    double       sum   = 0;
    int          last  = 0;
    parts->leaves      = false;
    for (int k = 0; k < parts->num; k++)
    {
        SharedLeaves* leaves = &parts->part[k].leaves;
        sum += share[k];
        leaves->first_slab = last;
        leaves->end_slab   = can && k < parts->num - 1 ? static_cast<int>(std::min(sum, 1.0) * c_slabs + 0.5)
                                                       : static_cast<int>(c_slabs);
        last               = leaves->end_slab;
        leaves->active     = can && leaves_of(plan)->slab[last] > leaves_of(plan)->slab[leaves->first_slab];
        parts->leaves      = parts->leaves || (k > 0 && leaves->active);
    }
}

double fmm_cuda_share_of_leaves(const gmxfmm_plan* plan, int k)
{
    const SharedLeaves& leaves = plan->device->parts->part[k].leaves;
    return static_cast<double>(leaves.end_slab - leaves.first_slab) / c_slabs;
}

gmxfmm_status fmm_cuda_set_shape_of_leaf_parts(gmxfmm_plan* plan)
{
    DeviceParts* parts = plan->device->parts;
    for (int k = 1; parts != NULL && k < parts->num; k++)
    {
        SharedLeaves*      leaves = &parts->part[k].leaves;
        const cudaStream_t stream = parts->part[k].far.stream;
        DeviceScope        scope(parts->part[k].id);
        if (leaves->operators != NULL && parts->leaf_arrays == plan->far.arrays)
        {
            FMM_CUDA(plan, cudaStreamSynchronize(stream)); /* a step may still be using the tables */
            FMM_TRY(checked(plan, leaves, fmm_octree_set_shape(leaves->operators, &plan->domain.cells, stream)));
            FMM_CUDA(plan, cudaStreamSynchronize(stream));
        }
    }
    return GMXFMM_OK;
}

/* The leaves with the slabs of a part alone: others end where they begin. */
static fmm_octree_level slabs_of(const gmxfmm_plan* plan, const SharedLeaves* leaves)
{
    const fmm_octree_level* all   = leaves_of(plan);
    fmm_octree_level        level = *all;
    level.tiles                   = rotation_tiles(all->slab);
    for (int c = 0; c <= c_slabs; c++)
    {
        level.slab[c] = all->slab[std::min(std::max(c, leaves->first_slab), leaves->end_slab)];
    }
    return level;
}

fmm_octree_level fmm_cuda_own_leaves(const gmxfmm_plan* plan)
{
    return slabs_of(plan, &plan->device->parts->part[0].leaves);
}

template <class T>
static gmxfmm_status copy(gmxfmm_plan* plan, RowsPart part, const void* from, void* to, int processors, cudaStream_t on)
{
    copy_rows<<<c_copyBlocks * processors, c_copyThreads, 0, on>>>(part, static_cast<const T*>(from),
                                                                   static_cast<T*>(to));
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

/* What part does in a step; its device is the current one. */
static gmxfmm_status enqueue_part(gmxfmm_plan* plan, DevicePart* part)
{
    const DeviceTree*       tree   = &plan->device->far.tree;
    const fmm_octree_level* all    = leaves_of(plan);
    const cudaStream_t      stream = part->far.stream;
    SharedLeaves*           leaves = &part->leaves;
    fmm_octree_level        lower = slabs_of(plan, leaves), upper = tree->level[plan->domain.tree->depth - 1];
    lower.parent         = leaves->parent.as<int>();
    lower.multipole      = leaves->multipole.memory;
    lower.local          = leaves->local.memory;
    upper.child          = leaves->child.as<int>();
    upper.near           = leaves->near.as<int>();
    const size_t   words = local_bytes(plan) / sizeof(uint4); /* rows end at multiples of 32 numbers */
    const RowsPart whole = {1, words, 0, words};
    const size_t   first = static_cast<size_t>(lower.slab[0]), end = static_cast<size_t>(lower.slab[c_slabs]);
    const RowsPart own = {static_cast<size_t>(plan->device->far.num_coef), all->stride, first, end - first};
    FMM_TRY(copy<uint4>(plan, whole, all->multipole, lower.multipole, part->processors, stream));
    FMM_CUDA(plan, cudaMemsetAsync(lower.local, 0, local_bytes(plan), stream));
    FMM_TRY(checked(plan, leaves, fmm_octree_m2l_rotation(leaves->operators, &upper, &lower, stream)));
    return is_double(plan) ? copy<double>(plan, own, lower.local, all->local, part->processors, stream)
                           : copy<float>(plan, own, lower.local, all->local, part->processors, stream);
}

gmxfmm_status fmm_cuda_begin_leaf_parts(gmxfmm_plan* plan, cudaStream_t stream)
{
    DeviceParts* parts = plan->device->parts;
    FMM_CUDA(plan, cudaMemsetAsync(leaves_of(plan)->local, 0, local_bytes(plan), stream));
    FMM_CUDA(plan, cudaEventRecord(parts->part[0].far.sent, stream));
    for (int k = 1; k < parts->num; k++)
    {
        DevicePart* part = &parts->part[k];
        DeviceScope scope(part->id);
        if (part->leaves.active)
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(part->far.stream, parts->part[0].far.sent, 0));
            FMM_TRY(enqueue_part(plan, part));
            FMM_CUDA(plan, cudaEventRecord(part->far.far_done, part->far.stream));
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_end_leaf_parts(gmxfmm_plan* plan, cudaStream_t stream)
{
    const DeviceParts* parts = plan->device->parts;
    for (int k = 1; k < parts->num; k++)
    {
        if (parts->part[k].leaves.active)
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(stream, parts->part[k].far.far_done, 0));
        }
    }
    return GMXFMM_OK;
}
