/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Leaves of several levels (tree.h), of open systems, made at assign: particles and targets are sorted along Morton's
 * curve, and the cells of each level found from those of the level above, by the functions of tree_leaves.h. To sorted
 * particles, P2P, P2M and L2P the leaves are a row of cells (make_geometry). P2M and L2P have positions in the unit of
 * each leaf, and expansions of all leaves in one array, from which they go to the levels and back.
 */
#include <climits>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "cuda/octree/leaves.h"

#include "cuda/particles/particles.h"

enum
{
    c_threads = 128,
    c_warps   = c_threads / 32
};

static const unsigned c_warp = 0xffffffff;

/* ------------------------------------------------------------------------------------------------------------- keys */

template <class X>
__global__ void find_keys(const __grid_constant__ Geometry g,
                          const BoxValues*                 box,
                          const X*                         x,
                          int                              n,
                          uint64_t*                        keys,
                          int*                             values,
                          AssignResults*                   r)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n)
    {
        return;
    }
    const X*     place   = x + 3 * static_cast<size_t>(i);
    const double from[3] = {static_cast<double>(place[0]), static_cast<double>(place[1]),
                            static_cast<double>(place[2])};
    double       t[3], rest[3];
    int          at[3] = {0, 0, 0};
    fmm_in_cells(box->origin, box->to_cells, from, t);
    if (!fmm_nearest_point(box->cell, NULL, NULL, t, at, rest))
    {
        atomicMin(&r->bad, i);
        at[0] = at[1] = at[2] = 0;
    }
    fmm_into_grid(g.periodic, g.inner, at);
    keys[i]   = fmm_morton_key(at);
    values[i] = i;
}

template <class X>
static gmxfmm_status launch_find_keys(gmxfmm_plan* plan, const ParticleSet* set, const void* x, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    if (set->n > 0)
    {
        find_keys<<<blocks_for(set->n, c_threads), c_threads, 0, stream>>>(
            make_geometry(plan), d->box.as<BoxValues>(), static_cast<const X*>(x), set->n,
            d->tree.leaves.unsorted.as<uint64_t>(), d->values.as<int>(), d->assign_results.as<AssignResults>());
        FMM_CUDA(plan, cudaGetLastError());
    }
    return GMXFMM_OK;
}

/* Sorts a set along Morton's curve: keys, and the indices of its particles. which: 0 for particles, 1 for targets. */
static gmxfmm_status sort_keys(gmxfmm_plan* plan, const ParticleSet* set, int which, const void* x, cudaStream_t stream)
{
    fmm_device*   d      = plan->device;
    DeviceLeaves* leaves = &d->tree.leaves;
    const int     bits   = 3 * plan->domain.tree->depth;
    const size_t  keys   = (static_cast<size_t>(set->n) + 1) * sizeof(uint64_t);
    size_t        bytes  = 0;
    AssignResults results;
    FMM_TRY(fmm_device_reserve(plan, &leaves->unsorted, keys));
    FMM_TRY(fmm_device_reserve(plan, &leaves->key[which], keys));
    FMM_TRY(fmm_cuda_begin_assign(plan, stream));
    FMM_TRY(plan->options.array_type == GMXFMM_DOUBLE ? launch_find_keys<double>(plan, set, x, stream)
                                                      : launch_find_keys<float>(plan, set, x, stream));
    FMM_TRY(fmm_cuda_assign_results(plan, &results, stream));
    if (results.bad != c_none)
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "position of %s %d: not finite, or too far away",
                        which == 0 ? "particle" : "target", results.bad);
    }
    if (set->n == 0)
    {
        return GMXFMM_OK;
    }
    const uint64_t* from   = leaves->unsorted.as<uint64_t>();
    uint64_t*       to     = leaves->key[which].as<uint64_t>();
    const int*      values = d->values.as<int>();
    int*            sorted = set->sorted.as<int>();
    FMM_CUDA(plan, cub::DeviceRadixSort::SortPairs(NULL, bytes, from, to, values, sorted, set->n, 0, bits, stream));
    FMM_TRY(fmm_device_reserve(plan, &leaves->scratch, bytes));
    bytes = leaves->scratch.capacity;
    FMM_CUDA(plan, cub::DeviceRadixSort::SortPairs(leaves->scratch.memory, bytes, from, to, values, sorted, set->n, 0,
                                                   bits, stream));
    return GMXFMM_OK;
}

static fmm_sorted_keys sorted_keys(const gmxfmm_plan* plan)
{
    const fmm_device* d = plan->device;
    fmm_sorted_keys   s;
    s.key[0] = d->tree.leaves.key[0].as<uint64_t>();
    s.key[1] = d->tree.leaves.key[1].as<uint64_t>();
    s.num[0] = d->sources.n;
    s.num[1] = d->targets.n;
    s.depth  = plan->domain.tree->depth;
    s.most   = plan->domain.tree->most;
    return s;
}

/* Prefix sums of num numbers, in place. */
static gmxfmm_status scan(gmxfmm_plan* plan, int* numbers, int num, cudaStream_t stream)
{
    DeviceBuffer* scratch = &plan->device->tree.leaves.scratch;
    size_t        bytes   = 0;
    FMM_CUDA(plan, cub::DeviceScan::ExclusiveSum(NULL, bytes, numbers, numbers, num, stream));
    FMM_TRY(fmm_device_reserve(plan, scratch, bytes));
    bytes = scratch->capacity;
    FMM_CUDA(plan, cub::DeviceScan::ExclusiveSum(scratch->memory, bytes, numbers, numbers, num, stream));
    return GMXFMM_OK;
}

/* ----------------------------------------------------------------------------------------------------------- levels */

/* The cells of a level, num of them, and what is found of them. */
struct DivideArgs
{
    fmm_sorted_keys      keys;
    int                  level, num;
    const uint64_t*      cell;
    const fmm_key_range* range;
    int*                 divided;
    int*                 mark;        /* leaves, by fmm_leaf_mark */
    int*                 exists;      /* 8 num + 1: children, by child index and then by cell; the last is 0 */
    fmm_key_range*       child_range; /* in the same order */
};

/* Which cells are divided, and their children. A warp has a cell, its lanes the cells near to it, and then the
 * children.
 */
__global__ void __launch_bounds__(c_threads) divide(const __grid_constant__ DivideArgs a)
{
    const int c = static_cast<int>((blockIdx.x * c_threads + threadIdx.x) / 32), lane = threadIdx.x % 32;
    if (c >= a.num)
    {
        return;
    }
    const uint64_t      cell  = a.cell[c];
    const fmm_key_range range = a.range[c];
    int                 near  = lane < 27 ? fmm_count_near_keys(&a.keys, a.level, cell, lane) : 0;
    for (int step = 16; step > 0; step /= 2)
    {
        near += __shfl_xor_sync(c_warp, near, step);
    }
    const bool divided = fmm_divides(&a.keys, a.level, &range, near);
    if (lane == 0)
    {
        a.divided[c] = divided;
    }
    if (lane == 0 && !divided)
    {
        a.mark[fmm_leaf_mark(&range)] = 1;
    }
    if (c == 0 && lane == 0)
    {
        a.exists[8 * a.num] = 0;
    }
    if (lane < 8)
    {
        const int           at    = lane * a.num + c;
        const fmm_key_range child = divided ? fmm_range_of_child(&a.keys, a.level, cell, &range, lane) : range;
        a.exists[at]              = divided && fmm_has_child(&a.keys, &child, a.level, lane);
        a.child_range[at]         = child;
    }
}

/* The first child of each child index, and after them their number. */
__global__ void find_child_slabs(const int* index, int num, int* slab)
{
    const int o = static_cast<int>(threadIdx.x);
    if (o <= 8)
    {
        slab[o] = index[o * num];
    }
}

struct ChildrenArgs
{
    int                  num, lower_num;
    const int*           index; /* prefix sums of DivideArgs.exists */
    const uint64_t*      cell;
    const fmm_key_range* child_range;
    int*                 child; /* (num + 1) x 8 */
    uint64_t*            lower_cell;
    fmm_key_range*       lower_range;
    int*                 lower_parent;
};

/* The cells of the level below. A thread has a child, if there is one; those of the empty cell come last. */
__global__ void __launch_bounds__(c_threads) make_children(const __grid_constant__ ChildrenArgs a)
{
    const int t = static_cast<int>(blockIdx.x * c_threads + threadIdx.x), octant = t / (a.num + 1), c = t % (a.num + 1);
    if (octant >= 8)
    {
        return;
    }
    int child = a.lower_num;
    if (c < a.num)
    {
        const int at = octant * a.num + c, i = a.index[at];
        if (a.index[at + 1] > i)
        {
            child             = i;
            a.lower_cell[i]   = a.cell[c] << 3 | static_cast<uint64_t>(octant);
            a.lower_range[i]  = a.child_range[at];
            a.lower_parent[i] = c;
        }
    }
    a.child[8 * static_cast<size_t>(c) + octant] = child;
}

struct NearArgs
{
    int             num, num_near, near_reach;
    const uint64_t* cell;
    const int *     parent, *upper_near, *upper_child; /* NULL: the root */
    const int4*     vectors;
    const short*    lookup;
    int*            near; /* (num + 1) x num_near */
};

/* Near cells from those of the parents. A thread has one near vector of a cell; those of the empty cell come last. */
__global__ void __launch_bounds__(c_threads) find_near(const __grid_constant__ NearArgs a)
{
    const int64_t t = static_cast<int64_t>(blockIdx.x) * c_threads + threadIdx.x;
    const int     c = static_cast<int>(t / a.num_near), o = static_cast<int>(t % a.num_near);
    if (c > a.num)
    {
        return;
    }
    int near = a.num;
    if (c < a.num && a.parent == NULL)
    {
        near = o == 0 ? c : a.num; /* itself */
    }
    else if (c < a.num)
    {
        const int4 k         = a.vectors[o];
        const int  vector[3] = {k.x, k.y, k.z}, r = a.near_reach, w = 2 * r + 1;
        int        above[3];
        const int  child = fmm_near_above(static_cast<int>(a.cell[c] & 7), vector, above);
        const int  q     = a.lookup[((above[0] + r) * w + above[1] + r) * w + above[2] + r];
        const int  cell  = a.upper_near[static_cast<size_t>(a.parent[c]) * a.num_near + q];
        near             = a.upper_child[8 * static_cast<size_t>(cell) + child];
    }
    a.near[static_cast<size_t>(t)] = near;
}

/* Room for the cells of level l, as they are found. */
static gmxfmm_status reserve_cells(gmxfmm_plan* plan, int l, int num)
{
    DeviceTree*       tree   = &plan->device->tree;
    DeviceLeaves*     leaves = &tree->leaves;
    fmm_octree_level* level  = &tree->level[l];
    const size_t      cells = fmm_cuda_with_room(num) + 1, near = static_cast<size_t>(plan->domain.cells.num_near);
    FMM_TRY(fmm_device_reserve(plan, &leaves->cell[l], cells * sizeof(uint64_t)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->range[l], cells * sizeof(fmm_key_range)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->divided[l], cells * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->leaf_of[l], cells * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &tree->parent[l], cells * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &tree->child[l], 8 * cells * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &tree->near[l], near * cells * sizeof(int)));
    level->num    = num;
    level->parent = tree->parent[l].as<int>();
    level->child  = tree->child[l].as<int>();
    level->near   = tree->near[l].as<int>();
    return GMXFMM_OK;
}

/* The root, which holds all. */
__global__ void make_root(int particles, int targets, uint64_t* cell, fmm_key_range* range)
{
    cell[0]           = 0;
    range[0].begin[0] = range[0].begin[1] = 0;
    range[0].end[0]                       = particles;
    range[0].end[1]                       = targets;
}

/* Near cells of level l, whose cells are there, and the children of the level above. */
static gmxfmm_status set_near(gmxfmm_plan* plan, int l, cudaStream_t stream)
{
    const fmm_device*       d     = plan->device;
    const fmm_octree_level* level = &d->tree.level[l];
    NearArgs                a;
    a.num           = level->num;
    a.num_near      = plan->domain.cells.num_near;
    a.near_reach    = d->near_reach;
    a.cell          = d->tree.leaves.cell[l].as<uint64_t>();
    a.parent        = l > 0 ? level->parent : NULL;
    a.upper_near    = l > 0 ? level[-1].near : NULL;
    a.upper_child   = l > 0 ? level[-1].child : NULL;
    a.vectors       = d->near_vectors.as<int4>();
    a.lookup        = d->near_lookup.as<short>();
    a.near          = d->tree.near[l].as<int>();
    const int64_t n = (static_cast<int64_t>(a.num) + 1) * a.num_near;
    find_near<<<blocks_for(n, c_threads), c_threads, 0, stream>>>(a);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

/* Divides the cells of level l and finds the slabs of those below, on the host. */
static gmxfmm_status divide_level(gmxfmm_plan* plan, int l, int* slab, cudaStream_t stream)
{
    DeviceTree*   tree   = &plan->device->tree;
    DeviceLeaves* leaves = &tree->leaves;
    DivideArgs    a;
    a.num                 = tree->level[l].num;
    const int64_t places  = 8 * static_cast<int64_t>(a.num) + 1;
    const size_t  reserve = 8 * fmm_cuda_with_room(a.num) + 1;
    if (places > INT_MAX)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "%d cells of one level are too many for a GPU", a.num);
    }
    FMM_TRY(fmm_device_reserve(plan, &leaves->exists, reserve * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->child_range, reserve * sizeof(fmm_key_range)));
    a.keys        = sorted_keys(plan);
    a.level       = l;
    a.cell        = leaves->cell[l].as<uint64_t>();
    a.range       = leaves->range[l].as<fmm_key_range>();
    a.divided     = leaves->divided[l].as<int>();
    a.mark        = leaves->marks.as<int>();
    a.exists      = leaves->exists.as<int>();
    a.child_range = leaves->child_range.as<fmm_key_range>();
    divide<<<blocks_for(a.num, c_warps), c_threads, 0, stream>>>(a);
    FMM_CUDA(plan, cudaGetLastError());
    FMM_TRY(scan(plan, a.exists, static_cast<int>(places), stream));
    find_child_slabs<<<1, 32, 0, stream>>>(a.exists, a.num, tree->slabs.as<int>());
    FMM_CUDA(plan, cudaGetLastError());
    FMM_CUDA(plan, cudaMemcpyAsync(slab, tree->slabs.memory, 9 * sizeof(int), cudaMemcpyDeviceToHost, stream));
    FMM_CUDA(plan, cudaStreamSynchronize(stream));
    return GMXFMM_OK;
}

/* The children of level l, which are those of level l + 1, whose arrays there is room for. */
static gmxfmm_status set_children(gmxfmm_plan* plan, int l, cudaStream_t stream)
{
    DeviceTree*   tree   = &plan->device->tree;
    DeviceLeaves* leaves = &tree->leaves;
    ChildrenArgs  a;
    a.num           = tree->level[l].num;
    a.lower_num     = tree->level[l + 1].num;
    a.index         = leaves->exists.as<int>();
    a.cell          = leaves->cell[l].as<uint64_t>();
    a.child_range   = leaves->child_range.as<fmm_key_range>();
    a.child         = tree->child[l].as<int>();
    a.lower_cell    = leaves->cell[l + 1].as<uint64_t>();
    a.lower_range   = leaves->range[l + 1].as<fmm_key_range>();
    a.lower_parent  = tree->parent[l + 1].as<int>();
    const int64_t n = 8 * (static_cast<int64_t>(a.num) + 1);
    make_children<<<blocks_for(n, c_threads), c_threads, 0, stream>>>(a);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

static gmxfmm_status make_levels(gmxfmm_plan* plan, cudaStream_t stream)
{
    DeviceTree*   tree   = &plan->device->tree;
    DeviceLeaves* leaves = &tree->leaves;
    const int     n = plan->device->sources.n, m = plan->device->targets.n;
    const size_t  marks = (static_cast<size_t>(n) + static_cast<size_t>(m) + 2) * sizeof(int);
    FMM_TRY(fmm_device_reserve(plan, &tree->slabs, 9 * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->marks, marks));
    FMM_CUDA(plan, cudaMemsetAsync(leaves->marks.memory, 0, marks, stream));
    FMM_TRY(reserve_cells(plan, 0, 1));
    for (int o = 0; o <= 8; o++)
    {
        tree->level[0].slab[o] = o > 0;
    }
    make_root<<<1, 1, 0, stream>>>(n, m, leaves->cell[0].as<uint64_t>(), leaves->range[0].as<fmm_key_range>());
    FMM_CUDA(plan, cudaGetLastError());
    FMM_TRY(set_near(plan, 0, stream));
    for (int l = 0;; l++)
    {
        int slab[9];
        tree->last = l;
        FMM_TRY(divide_level(plan, l, slab, stream));
        if (slab[8] == 0)
        {
            return GMXFMM_OK;
        }
        FMM_TRY(reserve_cells(plan, l + 1, slab[8]));
        for (int o = 0; o <= 8; o++)
        {
            tree->level[l + 1].slab[o] = slab[o];
        }
        FMM_TRY(set_children(plan, l, stream));
        FMM_TRY(set_near(plan, l + 1, stream));
    }
}

/* ----------------------------------------------------------------------------------------------------------- leaves */

/* All levels, as leaves are numbered and their lists made. */
struct LevelsArgs
{
    int             last, depth, num_near;
    fmm_leaf_level  level[FMM_MAX_LEVEL + 1];
    const uint64_t* cell[FMM_MAX_LEVEL + 1];
    int*            leaf_of[FMM_MAX_LEVEL + 1];
};

static LevelsArgs levels_args(const gmxfmm_plan* plan)
{
    const DeviceTree* tree = &plan->device->tree;
    LevelsArgs        a;
    a.last     = tree->last;
    a.depth    = plan->domain.tree->depth;
    a.num_near = plan->domain.cells.num_near;
    for (int l = 0; l <= a.last; l++)
    {
        a.level[l].num     = tree->level[l].num;
        a.level[l].range   = tree->leaves.range[l].as<fmm_key_range>();
        a.level[l].divided = tree->leaves.divided[l].as<int>();
        a.level[l].parent  = tree->level[l].parent;
        a.level[l].child   = tree->level[l].child;
        a.level[l].near    = tree->level[l].near;
        a.cell[l]          = tree->leaves.cell[l].as<uint64_t>();
        a.leaf_of[l]       = tree->leaves.leaf_of[l].as<int>();
    }
    return a;
}

/* Writes the leaves along Morton's curve, and marks levels with interaction lists. before: prefix sums of the marks. A
 * thread has a cell; the second index of the block is the level. */
__global__ void __launch_bounds__(c_threads) number_leaves(const __grid_constant__ LevelsArgs a,
                                                           const int*                         before,
                                                           LeafCell*                          at,
                                                           fmm_key_range*                     range,
                                                           fmm_leaf_place*                    place,
                                                           int*                               has_lists)
{
    const int l = static_cast<int>(blockIdx.y), c = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (c >= a.level[l].num)
    {
        return;
    }
    if (l > 0 && fmm_has_list(&a.level[l - 1], &a.level[l], a.num_near, c))
    {
        has_lists[l] = 1; /* all threads that write here write the same */
    }
    int leaf = -1;
    if (!a.level[l].divided[c])
    {
        const fmm_key_range r = a.level[l].range[c];
        leaf                  = before[fmm_leaf_mark(&r)];
        at[leaf]              = {l, c};
        range[leaf]           = r;
        place[leaf]           = fmm_place_of_leaf(a.cell[l][c], l, a.depth);
    }
    a.leaf_of[l][c] = leaf;
}

__global__ void __launch_bounds__(c_threads)
    find_leaves(const fmm_key_range* range, int num, int set, int n, int* cell_of)
{
    const int s = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (s < n)
    {
        cell_of[s] = fmm_leaf_of(range, num, set, s);
    }
}

/* Runs of particles near to each leaf: counted or, with FILL, written from start[leaf] on, its own first. A warp has a
 * leaf. */
template <bool FILL>
__global__ void __launch_bounds__(c_threads)
    find_runs(const __grid_constant__ LevelsArgs a, const LeafCell* at, int num_leaves, int* start, int2* runs)
{
    const int leaf = static_cast<int>((blockIdx.x * c_threads + threadIdx.x) / 32);
    if (leaf >= num_leaves)
    {
        return;
    }
    const int      lane  = static_cast<int>(threadIdx.x % 32);
    const unsigned lower = (1u << lane) - 1;
    int2*          to    = FILL ? runs + start[leaf] : NULL;
    int            num = 0, cell = at[leaf].cell;
    for (int l = at[leaf].level; l > 0; l--)
    {
        const fmm_leaf_level& level = a.level[l];
        for (int first = 0; first < a.num_near; first += 32)
        {
            int2 run       = make_int2(0, 0);
            bool runs_here = false;
            if (first + lane < a.num_near)
            {
                const int other = level.near[static_cast<size_t>(cell) * a.num_near + first + lane];
                runs_here       = fmm_is_on_list(&level, l == at[leaf].level, other);
                if (runs_here)
                {
                    run.x = level.range[other].begin[0];
                    run.y = level.range[other].end[0] - run.x;
                }
            }
            const unsigned found = __ballot_sync(c_warp, runs_here);
            if (FILL && runs_here)
            {
                to[num + __popc(found & lower)] = run;
            }
            num += __popc(found);
        }
        cell = level.parent[cell];
    }
    if (!FILL && lane == 0)
    {
        start[leaf] = num;
        if (leaf == 0)
        {
            start[num_leaves] = 0; /* the last one of a prefix sum */
        }
    }
}

static gmxfmm_status fetch_int(gmxfmm_plan* plan, const int* from, int* to, cudaStream_t stream)
{
    FMM_CUDA(plan, cudaMemcpyAsync(to, from, sizeof(int), cudaMemcpyDeviceToHost, stream));
    FMM_CUDA(plan, cudaStreamSynchronize(stream));
    return GMXFMM_OK;
}

static gmxfmm_status make_leaves(gmxfmm_plan* plan, cudaStream_t stream)
{
    fmm_device*   d      = plan->device;
    DeviceLeaves* leaves = &d->tree.leaves;
    const int     n = d->sources.n, m = d->targets.n;
    int           most = 0;
    FMM_TRY(scan(plan, leaves->marks.as<int>(), n + m + 2, stream));
    FMM_TRY(fetch_int(plan, leaves->marks.as<int>() + n + m + 1, &leaves->num, stream));
    const size_t room = fmm_cuda_with_room(leaves->num) + 1;
    FMM_TRY(fmm_device_reserve(plan, &leaves->at, room * sizeof(LeafCell)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->held, room * sizeof(fmm_key_range)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->place, room * sizeof(fmm_leaf_place)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->run_start, room * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->has_lists, sizeof(d->tree.has_lists)));
    FMM_CUDA(plan, cudaMemsetAsync(leaves->has_lists.memory, 0, sizeof(d->tree.has_lists), stream));
    const LevelsArgs a = levels_args(plan);
    for (int l = 0; l <= a.last; l++)
    {
        most = a.level[l].num > most ? a.level[l].num : most;
    }
    const dim3 grid(static_cast<unsigned>(blocks_for(most, c_threads)), static_cast<unsigned>(a.last + 1));
    number_leaves<<<grid, c_threads, 0, stream>>>(a, leaves->marks.as<int>(), leaves->at.as<LeafCell>(),
                                                  leaves->held.as<fmm_key_range>(), leaves->place.as<fmm_leaf_place>(),
                                                  leaves->has_lists.as<int>());
    FMM_CUDA(plan, cudaGetLastError());
    for (int set = 0; set < 2; set++)
    {
        const ParticleSet* particles = set == 0 ? &d->sources : &d->targets;
        if (particles->n > 0)
        {
            find_leaves<<<blocks_for(particles->n, c_threads), c_threads, 0, stream>>>(
                leaves->held.as<fmm_key_range>(), leaves->num, set, particles->n, particles->cell_of.as<int>());
            FMM_CUDA(plan, cudaGetLastError());
        }
    }
    return GMXFMM_OK;
}

static gmxfmm_status make_runs(gmxfmm_plan* plan, cudaStream_t stream)
{
    DeviceLeaves*    leaves = &plan->device->tree.leaves;
    const LevelsArgs a      = levels_args(plan);
    const int        blocks = blocks_for(leaves->num, c_warps);
    const LeafCell*  at     = leaves->at.as<LeafCell>();
    int*             start  = leaves->run_start.as<int>();
    int              num    = 0;
    find_runs<false><<<blocks, c_threads, 0, stream>>>(a, at, leaves->num, start, NULL);
    FMM_CUDA(plan, cudaGetLastError());
    FMM_TRY(scan(plan, start, leaves->num + 1, stream));
    FMM_CUDA(plan, cudaMemcpyAsync(plan->device->tree.has_lists, leaves->has_lists.memory,
                                   sizeof(plan->device->tree.has_lists), cudaMemcpyDeviceToHost, stream));
    FMM_TRY(fetch_int(plan, start + leaves->num, &num, stream));
    FMM_TRY(fmm_device_reserve(plan, &leaves->runs, (fmm_cuda_with_room(num) + 1) * sizeof(int2)));
    find_runs<true><<<blocks, c_threads, 0, stream>>>(a, at, leaves->num, start, leaves->runs.as<int2>());
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_find_leaves(gmxfmm_plan* plan, const void* x, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    FMM_TRY(sort_keys(plan, &d->sources, 0, x, stream));
    FMM_TRY(sort_keys(plan, &d->targets, 1, d->target_x.memory, stream));
    FMM_TRY(make_levels(plan, stream));
    FMM_TRY(make_leaves(plan, stream));
    plan->domain.tree->leaves.num = d->tree.leaves.num;
    return make_runs(plan, stream);
}

/* ------------------------------------------------------------------------------------------------------ expansions */

gmxfmm_status fmm_cuda_reserve_leaves(gmxfmm_plan* plan)
{
    fmm_device*   d      = plan->device;
    DeviceLeaves* leaves = &d->tree.leaves;
    leaves->stride       = (fmm_cuda_with_room(leaves->num) + 1 + 31) / 32 * 32;
    FMM_TRY(fmm_device_reserve(plan, &leaves->expansions,
                               static_cast<size_t>(d->num_coef) * leaves->stride * real_size(plan)));
    for (ParticleSet* set : {&d->sources, &d->targets})
    {
        /* one more than there are, as P2M reads ahead */
        FMM_TRY(fmm_device_reserve(plan, &set->scaled, (static_cast<size_t>(set->n) + 1) * 4 * real_size(plan)));
    }
    return GMXFMM_OK;
}

Expansions fmm_cuda_leaves_expansions(const gmxfmm_plan* plan)
{
    const DeviceTree* tree = &plan->device->tree;
    Expansions        far;
    far.leaves.num    = tree->leaves.num;
    far.leaves.edge   = 1; /* no root has a background */
    far.leaves.stride = tree->leaves.stride;
    far.leaves.cell   = NULL;
    far.multipole = far.local = tree->leaves.expansions.memory;
    far.strain                = tree->strain.as<double>();
    return far;
}

/* A thread has a cell, the second index of the block is the coefficient. */
template <class R>
__global__ void __launch_bounds__(c_threads)
    to_level(int num, const int* leaf_of, const R* leaves, size_t leaf_stride, R* multipole, size_t stride)
{
    const int    c = static_cast<int>(blockIdx.x * c_threads + threadIdx.x), leaf = c < num ? leaf_of[c] : -1;
    const size_t f = blockIdx.y;
    if (leaf >= 0)
    {
        multipole[f * stride + c] = leaves[f * leaf_stride + leaf];
    }
}

template <class R>
static gmxfmm_status launch_to_level(gmxfmm_plan* plan, int l, cudaStream_t stream)
{
    const fmm_device*       d      = plan->device;
    const DeviceLeaves*     leaves = &d->tree.leaves;
    const fmm_octree_level* level  = &d->tree.level[l];
    const dim3 grid(static_cast<unsigned>(blocks_for(level->num, c_threads)), static_cast<unsigned>(d->num_coef));
    to_level<R><<<grid, c_threads, 0, stream>>>(level->num, leaves->leaf_of[l].as<int>(), leaves->expansions.as<R>(),
                                                leaves->stride, static_cast<R*>(level->multipole), level->stride);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_leaves_to_level(gmxfmm_plan* plan, int l, cudaStream_t stream)
{
    return is_double(plan) ? launch_to_level<double>(plan, l, stream) : launch_to_level<float>(plan, l, stream);
}

template <class R>
struct LocalsArgs
{
    int             num, first;
    const LeafCell* at;
    const R*        local[FMM_MAX_LEVEL + 1];
    size_t          stride[FMM_MAX_LEVEL + 1];
    R*              leaves;
    size_t          leaf_stride;
};

/* A thread has a leaf, the second index of the block is the coefficient. */
template <class R>
__global__ void __launch_bounds__(c_threads) to_leaves(const __grid_constant__ LocalsArgs<R> a)
{
    const int    leaf = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    const size_t f    = blockIdx.y;
    if (leaf < a.num)
    {
        const LeafCell at = a.at[leaf];
        a.leaves[f * a.leaf_stride + leaf] =
            at.level < a.first ? R(0) : a.local[at.level][f * a.stride[at.level] + at.cell];
    }
}

template <class R>
static gmxfmm_status launch_to_leaves(gmxfmm_plan* plan, int first, cudaStream_t stream)
{
    const fmm_device* d    = plan->device;
    const DeviceTree* tree = &d->tree;
    LocalsArgs<R>     a;
    a.num         = tree->leaves.num;
    a.first       = first;
    a.at          = tree->leaves.at.as<LeafCell>();
    a.leaves      = tree->leaves.expansions.as<R>();
    a.leaf_stride = tree->leaves.stride;
    for (int l = 0; l <= FMM_MAX_LEVEL; l++)
    {
        a.local[l]  = l <= tree->last ? static_cast<const R*>(tree->level[l].local) : NULL;
        a.stride[l] = l <= tree->last ? tree->level[l].stride : 0;
    }
    const dim3 grid(static_cast<unsigned>(blocks_for(a.num, c_threads)), static_cast<unsigned>(d->num_coef));
    to_leaves<R><<<grid, c_threads, 0, stream>>>(a);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_levels_to_leaves(gmxfmm_plan* plan, int first, cudaStream_t stream)
{
    return is_double(plan) ? launch_to_leaves<double>(plan, first, stream)
                           : launch_to_leaves<float>(plan, first, stream);
}

/* Edges are powers of two, so that nothing is rounded. */
template <class R>
__global__ void __launch_bounds__(c_threads)
    from_leaf_units(int n, const int* cell_of, const fmm_leaf_place* place, Vec4<R>* field)
{
    const int s = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (s < n)
    {
        const R one = static_cast<R>(1 / place[cell_of[s]].edge), two = one * one;
        Vec4<R> v = field[s];
        v.x *= two;
        v.y *= two;
        v.z *= two;
        v.w *= one;
        field[s] = v;
    }
}

template <class R>
static void launch_from_leaf_units(const fmm_device* d, const ParticleSet* targets, cudaStream_t stream)
{
    from_leaf_units<R><<<blocks_for(targets->n, c_threads), c_threads, 0, stream>>>(
        targets->n, targets->cell_of.as<int>(), d->tree.leaves.place.as<fmm_leaf_place>(), d->far_out.as<Vec4<R>>());
}

gmxfmm_status fmm_cuda_from_leaf_units(gmxfmm_plan* plan, cudaStream_t stream)
{
    const fmm_device*  d       = plan->device;
    const ParticleSet* targets = targets_of(d);
    if (targets->n > 0)
    {
        is_double(plan) ? launch_from_leaf_units<double>(d, targets, stream)
                        : launch_from_leaf_units<float>(d, targets, stream);
        FMM_CUDA(plan, cudaGetLastError());
    }
    return GMXFMM_OK;
}
