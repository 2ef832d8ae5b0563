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
    return has_others(d) && d->group->connected && d->group->no_room != plan->far.arrays && plan->domain.tree != NULL &&
           plan->far.m2l == GMXFMM_M2L_ROTATION && rotation_tiles(leaves_of(plan)->slab) > c_rotationSomeTiles &&
           rotation_holds_planes(d->far.tree.operators, leaves_of(plan)->num);
}

/* Adds changes of the operators' memory to plan->bytes. */
static void count_bytes(gmxfmm_plan* plan, DeviceTree* tree)
{
    const size_t bytes = tree->operators != NULL ? fmm_octree_bytes(tree->operators) : 0;
    plan->bytes += bytes - tree->operator_bytes;
    tree->operator_bytes = bytes;
}

static gmxfmm_status checked(gmxfmm_plan* plan, const DeviceTree* tree, gmxfmm_status status)
{
    return status == GMXFMM_OK ? status
                               : fmm_fail(plan, status, "%s",
                                          tree->operators != NULL ? fmm_octree_message(tree->operators)
                                                                  : "out of memory for an octree");
}

/* Operators and kernels for the current device. */
static gmxfmm_status make_operators(gmxfmm_plan* plan, DeviceTree* tree)
{
    char      message[sizeof(plan->message)];
    const int order = plan->far.order;
    fmm_octree_destroy(tree->operators);
    tree->operators = NULL;
    const gmxfmm_status status =
        fmm_octree_create(&tree->operators, plan->domain.tree, &plan->domain.cells, order, is_double(plan));
    FMM_TRY(checked(plan, tree, status));
    if (!fmm_rotation_is_for(tree->rotation, order, is_double(plan)))
    {
        fmm_rotation_destroy(tree->rotation);
        const gmxfmm_status made = fmm_rotation_create(&tree->rotation, order, is_double(plan), plan->options.cache_dir,
                                                       message, sizeof(message));
        if (made != GMXFMM_OK)
        {
            return fmm_fail(plan, made, "%s", message);
        }
    }
    fmm_octree_set_rotation(tree->operators, tree->rotation);
    return GMXFMM_OK;
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

static gmxfmm_status reserve_part(gmxfmm_plan* plan, fmm_device* d)
{
    const DeviceTree* first = &plan->device->far.tree;
    const int         depth = plan->domain.tree->depth;
    DeviceTree*       tree  = &d->far.tree;
    {
        DeviceScope scope(d->id);
        FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.far)); /* what a step that failed may have left */
        if (tree->operators == NULL || plan->device->group->leaf_arrays != plan->far.arrays)
        {
            release_levels(plan, tree); /* of another depth */
            FMM_TRY(make_operators(plan, tree));
        }
        const gmxfmm_status status = fmm_octree_reserve(tree->operators, GMXFMM_M2L_ROTATION, leaves_of(plan)->num);
        count_bytes(plan, tree);
        FMM_TRY(checked(plan, tree, status));
        if (!rotation_holds_planes(tree->operators, leaves_of(plan)->num))
        {
            return GMXFMM_ERROR_MEMORY;
        }
        FMM_TRY(fmm_device_reserve(plan, &tree->parent[depth], first->parent[depth].capacity));
        FMM_TRY(fmm_device_reserve(plan, &tree->child[depth - 1], first->child[depth - 1].capacity));
        FMM_TRY(fmm_device_reserve(plan, &tree->near[depth - 1], first->near[depth - 1].capacity));
        FMM_TRY(fmm_device_reserve(plan, &tree->multipole[depth], local_bytes(plan)));
        FMM_TRY(fmm_device_reserve(plan, &tree->local[depth], local_bytes(plan)));
    }
    FMM_TRY(
        fmm_cuda_upload(plan, tree->parent[depth].memory, first->parent[depth].memory, first->parent[depth].capacity));
    FMM_TRY(fmm_cuda_upload(plan, tree->child[depth - 1].memory, first->child[depth - 1].memory,
                            first->child[depth - 1].capacity));
    return fmm_cuda_upload(plan, tree->near[depth - 1].memory, first->near[depth - 1].memory,
                           first->near[depth - 1].capacity);
}

gmxfmm_status fmm_cuda_release_leaf_parts(gmxfmm_plan* plan)
{
    FMM_CUDA(plan, cudaStreamSynchronize(plan->device->schedule.own));
    plan->device->group->leaf_arrays = 0;
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        fmm_device* d    = &plan->device[k];
        DeviceTree* tree = &d->far.tree;
        DeviceScope scope(d->id);
        FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.far));
        fmm_octree_destroy(tree->operators);
        fmm_rotation_destroy(tree->rotation);
        tree->operators = NULL;
        tree->rotation  = NULL;
        count_bytes(plan, tree);
        release_levels(plan, tree);
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_reserve_leaf_parts(gmxfmm_plan* plan)
{
    return fmm_cuda_reserve_far(plan, fmm_cuda_can_share_leaves(plan), &plan->device->group->leaf_arrays, reserve_part,
                                fmm_cuda_release_leaf_parts);
}

void fmm_cuda_set_leaf_parts(gmxfmm_plan* plan, const double* share)
{
    DeviceGroup* group = plan->device->group;
    const bool   can   = fmm_cuda_can_share_leaves(plan);
    double       sum   = 0;
    int          last  = 0;
    group->leaves      = false;
    for (int k = 0; k < group->num; k++)
    {
        DeviceRange* range = &plan->device[k].range;
        sum += share[k];
        range->first_leaves = last;
        range->end_leaves   = can && k < group->num - 1 ? static_cast<int>(std::min(sum, 1.0) * c_slabs + 0.5)
                                                        : static_cast<int>(c_slabs);
        last                = range->end_leaves;
        range->has_leaves   = can && leaves_of(plan)->slab[last] > leaves_of(plan)->slab[range->first_leaves];
        group->leaves       = group->leaves || (k > 0 && range->has_leaves);
    }
}

double fmm_cuda_share_of_leaves(const gmxfmm_plan* plan, int k)
{
    const DeviceRange& range = plan->device[k].range;
    return static_cast<double>(range.end_leaves - range.first_leaves) / c_slabs;
}

gmxfmm_status fmm_cuda_set_shape_of_leaf_parts(gmxfmm_plan* plan)
{
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        const DeviceTree*  tree   = &plan->device[k].far.tree;
        const cudaStream_t stream = plan->device[k].schedule.far;
        DeviceScope        scope(plan->device[k].id);
        if (tree->operators != NULL && plan->device->group->leaf_arrays == plan->far.arrays)
        {
            FMM_CUDA(plan, cudaStreamSynchronize(stream)); /* a step may still be using the tables */
            FMM_TRY(checked(plan, tree, fmm_octree_set_shape(tree->operators, &plan->domain.cells, stream)));
            FMM_CUDA(plan, cudaStreamSynchronize(stream));
        }
    }
    return GMXFMM_OK;
}

/* The leaves with the slabs of a range alone: others end where they begin. */
static fmm_octree_level slabs_of(const gmxfmm_plan* plan, const DeviceRange& range)
{
    const fmm_octree_level* all   = leaves_of(plan);
    fmm_octree_level        level = *all;
    level.tiles                   = rotation_tiles(all->slab);
    for (int c = 0; c <= c_slabs; c++)
    {
        level.slab[c] = all->slab[std::min(std::max(c, range.first_leaves), range.end_leaves)];
    }
    return level;
}

fmm_octree_level fmm_cuda_own_leaves(const gmxfmm_plan* plan)
{
    return slabs_of(plan, plan->device->range);
}

template <class T>
static gmxfmm_status copy(gmxfmm_plan* plan, RowsPart part, const void* from, void* to, int processors, cudaStream_t on)
{
    copy_rows<<<c_copyBlocks * processors, c_copyThreads, 0, on>>>(part, static_cast<const T*>(from),
                                                                   static_cast<T*>(to));
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

/* What a device does in a step; it is the current one. */
static gmxfmm_status enqueue_part(gmxfmm_plan* plan, const fmm_device* d)
{
    const DeviceTree *      first = &plan->device->far.tree, *tree = &d->far.tree;
    const fmm_octree_level* all        = leaves_of(plan);
    const cudaStream_t      stream     = d->schedule.far;
    const int               processors = d->limits.processors, depth = plan->domain.tree->depth;
    fmm_octree_level        lower = slabs_of(plan, d->range), upper = first->level[depth - 1];
    lower.parent         = tree->parent[depth].as<int>();
    lower.multipole      = tree->multipole[depth].memory;
    lower.local          = tree->local[depth].memory;
    upper.child          = tree->child[depth - 1].as<int>();
    upper.near           = tree->near[depth - 1].as<int>();
    const size_t   words = local_bytes(plan) / sizeof(uint4); /* rows end at multiples of 32 numbers */
    const RowsPart whole = {1, words, 0, words};
    const size_t   begin = static_cast<size_t>(lower.slab[0]), end = static_cast<size_t>(lower.slab[c_slabs]);
    const RowsPart own = {static_cast<size_t>(plan->device->far.num_coef), all->stride, begin, end - begin};
    FMM_TRY(copy<uint4>(plan, whole, all->multipole, lower.multipole, processors, stream));
    FMM_CUDA(plan, cudaMemsetAsync(lower.local, 0, local_bytes(plan), stream));
    FMM_TRY(checked(plan, tree, fmm_octree_m2l_rotation(tree->operators, &upper, &lower, stream)));
    return is_double(plan) ? copy<double>(plan, own, lower.local, all->local, processors, stream)
                           : copy<float>(plan, own, lower.local, all->local, processors, stream);
}

gmxfmm_status fmm_cuda_begin_leaf_parts(gmxfmm_plan* plan, cudaStream_t stream)
{
    const cudaEvent_t sent = plan->device->schedule.sent;
    FMM_CUDA(plan, cudaMemsetAsync(leaves_of(plan)->local, 0, local_bytes(plan), stream));
    FMM_CUDA(plan, cudaEventRecord(sent, stream));
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        const fmm_device*     d = &plan->device[k];
        const DeviceSchedule& s = d->schedule;
        DeviceScope           scope(d->id);
        if (d->range.has_leaves)
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(s.far, sent, 0));
            FMM_TRY(enqueue_part(plan, d));
            FMM_CUDA(plan, cudaEventRecord(s.far_done, s.far));
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_end_leaf_parts(gmxfmm_plan* plan, cudaStream_t stream)
{
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        if (plan->device[k].range.has_leaves)
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(stream, plan->device[k].schedule.far_done, 0));
        }
    }
    return GMXFMM_OK;
}
