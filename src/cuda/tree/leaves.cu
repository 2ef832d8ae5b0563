/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Leaves of several levels (tree.h), of open systems, made at assign: particles and targets are sorted along Morton's
 * curve, and the cells of all levels found from their keys at once, by the functions of tree_leaves.h, so that the host
 * waits for two numbers only, however many levels there are. The cells of all levels are in one array, by child index,
 * so that one launch has M2L of all of them. To sorted particles, P2P, P2M and L2P the leaves are a row of cells
 * (make_geometry). P2M and L2P have positions in the unit of each leaf, and expansions of all leaves in one array, from
 * which they go to the cells and back.
 */
#include <climits>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "cuda/tree/leaves.h"

#include "cuda/particles/particles.h"

enum
{
    c_threads = 128,
    c_warps   = c_threads / 32
};

static const unsigned c_warp = 0xffffffff;

/* ------------------------------------------------------------------------------------------------------------- keys */

template <class X>
__global__ void find_keys(
    const __grid_constant__ Geometry g, const BoxValues* box, const X* x, int n, fmm_key* keys, int* values, int* bad)
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
        atomicMin(bad, i);
        at[0] = at[1] = at[2] = 0;
    }
    fmm_into_grid(g.periodic, g.inner, at);
    keys[i]   = fmm_morton_key(at);
    values[i] = i;
}

/* What the host waits for, behind the sums of fmm_count_cells: these of all items, and the lowest particle and the
 * lowest target that no cell can hold, or c_none. */
struct FoundTotals
{
    uint64_t count;
    int      bad[2];
};

static int num_items(const fmm_device* d)
{
    const int num = d->particles.sources.n + d->particles.targets.n;
    return num > 0 ? num : 1;
}

static FoundTotals* found_totals(const fmm_device* d)
{
    return reinterpret_cast<FoundTotals*>(d->far.tree.leaves.before.as<uint64_t>() + num_items(d));
}

template <class X>
static gmxfmm_status
launch_find_keys(gmxfmm_plan* plan, const ParticleSet* set, int which, const void* x, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    find_keys<<<blocks_for(set->n, c_threads), c_threads, 0, stream>>>(
        make_geometry(plan), d->domain.box.as<BoxValues>(), static_cast<const X*>(x), set->n,
        d->far.tree.leaves.unsorted.as<fmm_key>(), d->particles.values.as<int>(), found_totals(d)->bad + which);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

/* Sorts items by key, of which the lowest bits count; what: as the numbers of the items before and after. */
template <class K>
static gmxfmm_status sort_pairs(
    gmxfmm_plan* plan, const K* from, K* to, const int* what, int* sorted, int num, int bits, cudaStream_t stream)
{
    DeviceBuffer* scratch = &plan->device->far.tree.leaves.scratch;
    size_t        bytes   = 0;
    FMM_CUDA(plan, cub::DeviceRadixSort::SortPairs(NULL, bytes, from, to, what, sorted, num, 0, bits, stream));
    FMM_TRY(fmm_device_reserve(plan, scratch, bytes));
    bytes = scratch->capacity;
    FMM_CUDA(plan,
             cub::DeviceRadixSort::SortPairs(scratch->memory, bytes, from, to, what, sorted, num, 0, bits, stream));
    return GMXFMM_OK;
}

/* Sorts a set along Morton's curve: keys, and the indices of its particles. which: 0 for particles, 1 for targets. */
static gmxfmm_status sort_keys(gmxfmm_plan* plan, const ParticleSet* set, int which, const void* x, cudaStream_t stream)
{
    fmm_device*   d      = plan->device;
    DeviceLeaves* leaves = &d->far.tree.leaves;
    const size_t  keys   = (static_cast<size_t>(set->n) + 1) * sizeof(fmm_key);
    FMM_TRY(fmm_device_reserve(plan, &leaves->unsorted, keys));
    FMM_TRY(fmm_device_reserve(plan, &leaves->key[which], keys));
    if (set->n == 0)
    {
        return GMXFMM_OK;
    }
    FMM_TRY(plan->options.array_type == GMXFMM_DOUBLE ? launch_find_keys<double>(plan, set, which, x, stream)
                                                      : launch_find_keys<float>(plan, set, which, x, stream));
    return sort_pairs(plan, leaves->unsorted.as<fmm_key>(), leaves->key[which].as<fmm_key>(),
                      d->particles.values.as<int>(), set->sorted.as<int>(), set->n, 3 * plan->domain.tree->depth,
                      stream);
}

static fmm_sorted_keys sorted_keys(const gmxfmm_plan* plan)
{
    const fmm_device*   d      = plan->device;
    const DeviceLeaves* leaves = &d->far.tree.leaves;
    fmm_sorted_keys     s;
    s.key[0]    = leaves->key[0].as<fmm_key>();
    s.key[1]    = leaves->key[1].as<fmm_key>();
    s.num[0]    = d->particles.sources.n;
    s.num[1]    = d->particles.targets.n;
    s.item      = s.num[1] > 0 ? leaves->item.as<fmm_key>() : s.key[0];
    s.num_items = num_items(d);
    s.depth     = plan->domain.tree->depth;
    s.most      = plan->domain.tree->most;
    return s;
}

/* The keys of both sets, sorted: a thread has a particle or a target, and finds how many of the others come before. */
__global__ void __launch_bounds__(c_threads) merge_keys(const __grid_constant__ fmm_sorted_keys s, fmm_key* item)
{
    const int t   = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    const int set = t < s.num[0] ? 0 : 1, i = t - set * s.num[0];
    if (i < s.num[set])
    {
        const fmm_key key    = s.key[set][i];
        const int     before = fmm_first_key(s.key[1 - set], 0, s.num[1 - set], key + static_cast<fmm_key>(set));
        item[i + before]     = key;
    }
}

static gmxfmm_status make_items(gmxfmm_plan* plan, const void* x, cudaStream_t stream)
{
    fmm_device*   d      = plan->device;
    DeviceLeaves* leaves = &d->far.tree.leaves;
    const size_t  items  = static_cast<size_t>(num_items(d));
    FMM_TRY(fmm_device_reserve(plan, &leaves->before, items * sizeof(uint64_t) + sizeof(FoundTotals)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->leaf_level, items * sizeof(int)));
    FMM_CUDA(plan, cudaMemsetAsync(found_totals(d), c_none & 0xff, sizeof(FoundTotals), stream));
    FMM_TRY(sort_keys(plan, &d->particles.sources, 0, x, stream));
    FMM_TRY(sort_keys(plan, &d->particles.targets, 1, d->particles.target_x.memory, stream));
    if (d->particles.sources.n + d->particles.targets.n == 0)
    {
        FMM_CUDA(plan, cudaMemsetAsync(leaves->key[0].memory, 0, sizeof(fmm_key), stream));
    }
    if (d->particles.targets.n > 0)
    {
        FMM_TRY(fmm_device_reserve(plan, &leaves->item, items * sizeof(fmm_key)));
        merge_keys<<<blocks_for(static_cast<int64_t>(items), c_threads), c_threads, 0, stream>>>(
            sorted_keys(plan), leaves->item.as<fmm_key>());
        FMM_CUDA(plan, cudaGetLastError());
    }
    return GMXFMM_OK;
}

/* Prefix sums of num numbers, in place. */
template <class T>
static gmxfmm_status scan(gmxfmm_plan* plan, T* numbers, int num, cudaStream_t stream)
{
    DeviceBuffer* scratch = &plan->device->far.tree.leaves.scratch;
    size_t        bytes   = 0;
    FMM_CUDA(plan, cub::DeviceScan::ExclusiveSum(NULL, bytes, numbers, numbers, num, stream));
    FMM_TRY(fmm_device_reserve(plan, scratch, bytes));
    bytes = scratch->capacity;
    FMM_CUDA(plan, cub::DeviceScan::ExclusiveSum(scratch->memory, bytes, numbers, numbers, num, stream));
    return GMXFMM_OK;
}

/* ------------------------------------------------------------------------------------------------------------ cells */

/* Whether the cell of a level that the key is in is divided. All lanes of a warp call, with the same arguments, and
 * have the cells near to it. */
static __device__ bool divides(const fmm_sorted_keys& s, int level, fmm_key key)
{
    const int lane = static_cast<int>(threadIdx.x % 32);
    int       near = lane < 27 ? fmm_count_near_keys(&s, level, key >> (3 * (s.depth - level)), lane) : 0;
    const int here = __shfl_sync(c_warp, near, FMM_BLOCK_MIDDLE);
    for (int step = 16; step > 0; step /= 2)
    {
        near += __shfl_xor_sync(c_warp, near, step);
    }
    return fmm_divides(&s, level, here, near);
}

/* The level of the leaf that the key is in, below `low`, whose cell is divided: by steps that double, then by
 * bisection.
 */
static __device__ int find_leaf_level(const fmm_sorted_keys& s, int low, fmm_key key)
{
    int high = s.depth, step = 1;
    while (high - low > 1)
    {
        const int middle = low + step < high ? low + step : (low + high) / 2;
        if (divides(s, middle, key))
        {
            low = middle;
            step *= 2;
        }
        else
        {
            high = middle;
            step = s.depth;
        }
    }
    return high;
}

/* The leaf level of each item, and its cells, counted. A warp has 32 items: those that have no cell below what divides
 * them from the one before are in the same leaf as that. */
__global__ void __launch_bounds__(c_threads)
    find_leaf_levels(const __grid_constant__ fmm_sorted_keys s, int* leaf_level, uint64_t* count)
{
    const int lane  = static_cast<int>(threadIdx.x % 32);
    const int item  = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    const int first = item < s.num_items ? fmm_first_level(&s, item) : s.depth + 1;
    int       begin = 0, leaf = 0;
    if (item - lane >= s.num_items)
    {
        return;
    }
    for (unsigned left = 1; left != 0;)
    {
        const int above = __shfl_sync(c_warp, first, begin) - 1;
        const int found = find_leaf_level(s, begin > 0 ? above : 0, s.item[item - lane + begin]);
        leaf            = lane >= begin ? found : leaf;
        left            = __ballot_sync(c_warp, lane > begin && first <= found);
        begin           = __ffs(static_cast<int>(left)) - 1;
    }
    if (item < s.num_items)
    {
        leaf_level[item] = leaf;
        count[item]      = fmm_count_cells(&s, item, leaf);
    }
}

/* A cell, as cells are found (fmm_find_cell): its first item, and its level. */
struct FoundCell
{
    int item, level;
};

/* What is known of all cells. */
struct CellsArgs
{
    fmm_sorted_keys  keys;
    fmm_found_items  items;
    int              num;
    const FoundCell* found;
    const uint16_t*  order;    /* fmm_order_of_cell, sorted */
    const int*       number;   /* of each cell among `found` */
    int*             index_of; /* of each of `found` the cell */
};

__global__ void __launch_bounds__(c_threads) list_cells(const __grid_constant__ fmm_sorted_keys s,
                                                        const fmm_found_items                   items,
                                                        FoundCell*                              found,
                                                        uint16_t*                               order,
                                                        int*                                    number)
{
    const int item = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (item >= s.num_items)
    {
        return;
    }
    const int last = items.leaf_level[item];
    int       at   = fmm_cells_of(items.before[item]);
    for (int level = fmm_first_level(&s, item); level <= last; level++, at++)
    {
        found[at]  = {item, level};
        order[at]  = static_cast<uint16_t>(fmm_order_of_cell(level, fmm_cell_of_item(&s, level, item), last));
        number[at] = at;
    }
}

/* The index of each cell, and the first cell of each order. There are no children yet. */
__global__ void __launch_bounds__(c_threads)
    number_cells(const __grid_constant__ CellsArgs a, int* order_start, int* child)
{
    const int c = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (c > a.num)
    {
        return;
    }
    const int from = c > 0 ? a.order[c - 1] : -1, to = c < a.num ? a.order[c] : FMM_CELL_ORDERS;
    for (int order = from + 1; order <= to; order++)
    {
        order_start[order] = c;
    }
    for (int o = 0; o < 8; o++)
    {
        child[8 * static_cast<size_t>(c) + o] = a.num;
    }
    if (c < a.num)
    {
        a.index_of[a.number[c]] = c;
    }
}

struct LinkArgs
{
    const BoxValues* box;
    int *            parent, *child, *leaf_of;
    fmm_key_range*   range;
    double*          scale;
    int*             at; /* from here on of each leaf */
    fmm_key_range*   held;
    fmm_leaf_place*  place;
};

/* Parents and children, what cells hold, and the leaves along Morton's curve. */
__global__ void __launch_bounds__(c_threads)
    link_cells(const __grid_constant__ CellsArgs a, const __grid_constant__ LinkArgs to)
{
    const int c = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (c >= a.num)
    {
        return;
    }
    const FoundCell     found = a.found[a.number[c]];
    const fmm_key       cell  = fmm_cell_of_item(&a.keys, found.level, found.item);
    const fmm_key_range range = fmm_range_of_cell(&a.keys, found.level, cell);
    int                 leaf = -1, parent = a.num;
    if (found.level > 0)
    {
        parent = a.index_of[fmm_find_cell(&a.keys, &a.items, found.level - 1, cell >> 3)];
        to.child[8 * static_cast<size_t>(parent) + (cell & 7)] = c;
    }
    if (a.items.leaf_level[found.item] == found.level)
    {
        leaf           = fmm_leaves_of(a.items.before[found.item]);
        to.at[leaf]    = c;
        to.held[leaf]  = range;
        to.place[leaf] = fmm_place_of_leaf(cell, found.level, a.keys.depth, to.box->origin, to.box->to_cells);
    }
    to.parent[c]  = parent;
    to.range[c]   = range;
    to.leaf_of[c] = leaf;
    to.scale[c]   = ldexp(1.0, found.level - a.keys.depth);
}

/* Near cells. A thread has one near vector of a cell; those of the empty cell come last. */
__global__ void __launch_bounds__(c_threads)
    find_near(const __grid_constant__ CellsArgs a, int num_near, const int4* vectors, int* near)
{
    const int64_t t = static_cast<int64_t>(blockIdx.x) * c_threads + threadIdx.x;
    const int     c = static_cast<int>(t / num_near), o = static_cast<int>(t % num_near);
    if (c > a.num)
    {
        return;
    }
    int at = a.num;
    if (c < a.num)
    {
        const FoundCell found     = a.found[a.number[c]];
        const int4      k         = vectors[o];
        const int       vector[3] = {k.x, k.y, k.z};
        const int       number    = fmm_find_near_cell(&a.keys, &a.items, found.level,
                                                       fmm_cell_of_item(&a.keys, found.level, found.item), vector);
        at                        = number >= 0 ? a.index_of[number] : a.num;
    }
    near[t] = at;
}

static CellsArgs cells_args(const gmxfmm_plan* plan)
{
    const DeviceLeaves* leaves = &plan->device->far.tree.leaves;
    CellsArgs           a;
    a.keys             = sorted_keys(plan);
    a.items.leaf_level = leaves->leaf_level.as<int>();
    a.items.before     = leaves->before.as<uint64_t>();
    a.num              = plan->device->far.tree.level[0].num;
    a.found            = leaves->found.as<FoundCell>();
    a.order            = leaves->order[1].as<uint16_t>();
    a.number           = leaves->number[1].as<int>();
    a.index_of         = leaves->index_of.as<int>();
    return a;
}

/* Room for the cells of all levels and for the leaves. */
static gmxfmm_status reserve_cells(gmxfmm_plan* plan)
{
    DeviceTree*       tree   = &plan->device->far.tree;
    DeviceLeaves*     leaves = &tree->leaves;
    fmm_octree_level* all    = &tree->level[0];
    const size_t      near   = static_cast<size_t>(plan->domain.cells.num_near);
    const size_t      cells = fmm_cuda_with_room(all->num) + 1, num = fmm_cuda_with_room(leaves->num) + 1;
    for (int i = 0; i < 2; i++)
    {
        FMM_TRY(fmm_device_reserve(plan, &leaves->order[i], cells * sizeof(uint16_t)));
        FMM_TRY(fmm_device_reserve(plan, &leaves->number[i], cells * sizeof(int)));
    }
    FMM_TRY(fmm_device_reserve(plan, &leaves->found, cells * sizeof(FoundCell)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->index_of, cells * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->totals, (FMM_CELL_ORDERS + 2) * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->range, cells * sizeof(fmm_key_range)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->leaf_of, cells * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->scale, cells * sizeof(double)));
    FMM_TRY(fmm_device_reserve(plan, &tree->parent[0], cells * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &tree->child[0], 8 * cells * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &tree->near[0], near * cells * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->at, num * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->held, num * sizeof(fmm_key_range)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->place, num * sizeof(fmm_leaf_place)));
    FMM_TRY(fmm_device_reserve(plan, &leaves->run_start, num * sizeof(int)));
    all->parent = tree->parent[0].as<int>();
    all->child  = tree->child[0].as<int>();
    all->near   = tree->near[0].as<int>();
    all->scale  = leaves->scale.as<double>();
    return GMXFMM_OK;
}

/* Counts cells and leaves, and waits for their numbers. */
static gmxfmm_status count_cells(gmxfmm_plan* plan, cudaStream_t stream)
{
    fmm_device*           d      = plan->device;
    DeviceLeaves*         leaves = &d->far.tree.leaves;
    const fmm_sorted_keys keys   = sorted_keys(plan);
    FoundTotals           found;
    find_leaf_levels<<<blocks_for(keys.num_items, c_threads), c_threads, 0, stream>>>(
        keys, leaves->leaf_level.as<int>(), leaves->before.as<uint64_t>());
    FMM_CUDA(plan, cudaGetLastError());
    FMM_TRY(scan(plan, leaves->before.as<uint64_t>(), keys.num_items + 1, stream));
    FMM_CUDA(plan, cudaMemcpyAsync(&found, found_totals(d), sizeof(found), cudaMemcpyDeviceToHost, stream));
    FMM_CUDA(plan, cudaStreamSynchronize(stream));
    for (int set = 0; set < 2; set++)
    {
        if (found.bad[set] != c_none)
        {
            return fmm_fail(plan, GMXFMM_ERROR_POSITION, "position of %s %d: not finite, or too far away",
                            set == 0 ? "particle" : "target", found.bad[set]);
        }
    }
    d->far.tree.level[0].num = fmm_cells_of(found.count);
    leaves->num              = fmm_leaves_of(found.count);
    if (d->far.tree.level[0].num >= INT_MAX / 8)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "%d cells are too many for a GPU", d->far.tree.level[0].num);
    }
    return GMXFMM_OK;
}

static gmxfmm_status make_cells(gmxfmm_plan* plan, cudaStream_t stream)
{
    const DeviceTree*   tree     = &plan->device->far.tree;
    const DeviceLeaves* leaves   = &tree->leaves;
    const CellsArgs     a        = cells_args(plan);
    const int           num_near = plan->domain.cells.num_near;
    LinkArgs            link;
    int                 bits = 1;
    while (1 << bits < FMM_CELL_ORDERS)
    {
        bits++;
    }
    list_cells<<<blocks_for(a.keys.num_items, c_threads), c_threads, 0, stream>>>(
        a.keys, a.items, leaves->found.as<FoundCell>(), leaves->order[0].as<uint16_t>(), leaves->number[0].as<int>());
    FMM_CUDA(plan, cudaGetLastError());
    FMM_TRY(sort_pairs(plan, leaves->order[0].as<uint16_t>(), leaves->order[1].as<uint16_t>(),
                       leaves->number[0].as<int>(), leaves->number[1].as<int>(), a.num, bits, stream));
    number_cells<<<blocks_for(static_cast<int64_t>(a.num) + 1, c_threads), c_threads, 0, stream>>>(
        a, leaves->totals.as<int>(), tree->child[0].as<int>());
    FMM_CUDA(plan, cudaGetLastError());
    link.box     = plan->device->domain.box.as<BoxValues>();
    link.parent  = tree->parent[0].as<int>();
    link.child   = tree->child[0].as<int>();
    link.leaf_of = leaves->leaf_of.as<int>();
    link.range   = leaves->range.as<fmm_key_range>();
    link.scale   = leaves->scale.as<double>();
    link.at      = leaves->at.as<int>();
    link.held    = leaves->held.as<fmm_key_range>();
    link.place   = leaves->place.as<fmm_leaf_place>();
    link_cells<<<blocks_for(a.num, c_threads), c_threads, 0, stream>>>(a, link);
    FMM_CUDA(plan, cudaGetLastError());
    const int64_t vectors = (static_cast<int64_t>(a.num) + 1) * num_near;
    find_near<<<blocks_for(vectors, c_threads), c_threads, 0, stream>>>(
        a, num_near, plan->device->near.vectors.as<int4>(), tree->near[0].as<int>());
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

/* The slabs of all cells, and the parents of each level. start: of each order (fmm_cell_order). */
static void set_slabs(DeviceTree* tree, const int* start)
{
    fmm_octree_parents* parents = &tree->parents;
    tree->last                  = 0;
    for (int o = 0; o <= 8; o++)
    {
        tree->level[0].slab[o] = start[o < 8 ? fmm_cell_order(o, 0, 0) : FMM_CELL_ORDERS];
    }
    for (int l = 0; l < FMM_MAX_LEVEL; l++)
    {
        for (int o = 0; o < 8; o++)
        {
            const int order       = fmm_cell_order(o, 0, l);
            parents->begin[l][o]  = start[order];
            parents->end[l][o]    = start[order + 1];
            const bool is_divided = start[order + 1] > start[order];
            tree->last            = is_divided ? l + 1 : tree->last;
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------- leaves */

__global__ void __launch_bounds__(c_threads)
    find_leaves(const fmm_key_range* range, int num, int set, int n, int* cell_of)
{
    const int s = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (s < n)
    {
        cell_of[s] = fmm_leaf_of(range, num, set, s);
    }
}

static gmxfmm_status make_leaves(gmxfmm_plan* plan, cudaStream_t stream)
{
    fmm_device*         d      = plan->device;
    const DeviceLeaves* leaves = &d->far.tree.leaves;
    for (int set = 0; set < 2; set++)
    {
        const ParticleSet* particles = set == 0 ? &d->particles.sources : &d->particles.targets;
        if (particles->n > 0)
        {
            find_leaves<<<blocks_for(particles->n, c_threads), c_threads, 0, stream>>>(
                leaves->held.as<fmm_key_range>(), leaves->num, set, particles->n, particles->cell_of.as<int>());
            FMM_CUDA(plan, cudaGetLastError());
        }
    }
    return GMXFMM_OK;
}

/* Runs of particles near to each leaf: counted or, with FILL, written from start[leaf] on, its own first. A warp has a
 * leaf. The root, cell 0, is near to itself alone. */
template <bool FILL>
__global__ void __launch_bounds__(c_threads) find_runs(
    const __grid_constant__ fmm_leaf_cells a, int num_near, const int* at, int num_leaves, int* start, int2* runs)
{
    const int leaf = static_cast<int>((blockIdx.x * c_threads + threadIdx.x) / 32);
    if (leaf >= num_leaves)
    {
        return;
    }
    const int      lane = static_cast<int>(threadIdx.x % 32), own = at[leaf];
    const unsigned lower = (1u << lane) - 1;
    int2*          to    = FILL ? runs + start[leaf] : NULL;
    int            num   = 0;
    for (int cell = own; cell > 0; cell = a.parent[cell])
    {
        for (int first = 0; first < num_near; first += 32)
        {
            int2 run       = make_int2(0, 0);
            bool runs_here = false;
            if (first + lane < num_near)
            {
                const int other = a.near[static_cast<size_t>(cell) * num_near + first + lane];
                runs_here       = fmm_is_on_list(&a, cell == own, other);
                if (runs_here)
                {
                    run.x = a.range[other].begin[0];
                    run.y = a.range[other].end[0] - run.x;
                }
            }
            const unsigned found = __ballot_sync(c_warp, runs_here);
            if (FILL && runs_here)
            {
                to[num + __popc(found & lower)] = run;
            }
            num += __popc(found);
        }
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

static gmxfmm_status make_runs(gmxfmm_plan* plan, cudaStream_t stream)
{
    DeviceTree*    tree     = &plan->device->far.tree;
    DeviceLeaves*  leaves   = &tree->leaves;
    const int      blocks   = blocks_for(leaves->num, c_warps);
    const int      num_near = plan->domain.cells.num_near;
    const int*     at       = leaves->at.as<int>();
    int *          start = leaves->run_start.as<int>(), *totals = leaves->totals.as<int>();
    int            found[FMM_CELL_ORDERS + 2]; /* the first of each order, all cells, all runs */
    fmm_leaf_cells a;
    a.num    = tree->level[0].num;
    a.range  = leaves->range.as<fmm_key_range>();
    a.leaf   = leaves->leaf_of.as<int>();
    a.parent = tree->level[0].parent;
    a.near   = tree->level[0].near;
    find_runs<false><<<blocks, c_threads, 0, stream>>>(a, num_near, at, leaves->num, start, NULL);
    FMM_CUDA(plan, cudaGetLastError());
    FMM_TRY(scan(plan, start, leaves->num + 1, stream));
    FMM_CUDA(plan, cudaMemcpyAsync(totals + FMM_CELL_ORDERS + 1, start + leaves->num, sizeof(int),
                                   cudaMemcpyDeviceToDevice, stream));
    FMM_CUDA(plan, cudaMemcpyAsync(found, totals, sizeof(found), cudaMemcpyDeviceToHost, stream));
    FMM_CUDA(plan, cudaStreamSynchronize(stream));
    set_slabs(tree, found);
    const size_t room = fmm_cuda_with_room(found[FMM_CELL_ORDERS + 1]) + 1;
    FMM_TRY(fmm_device_reserve(plan, &leaves->runs, room * sizeof(int2)));
    find_runs<true><<<blocks, c_threads, 0, stream>>>(a, num_near, at, leaves->num, start, leaves->runs.as<int2>());
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_find_leaves(gmxfmm_plan* plan, const void* x, cudaStream_t stream)
{
    FMM_TRY(make_items(plan, x, stream));
    FMM_TRY(count_cells(plan, stream));
    FMM_TRY(reserve_cells(plan));
    FMM_TRY(make_cells(plan, stream));
    FMM_TRY(make_leaves(plan, stream));
    return make_runs(plan, stream);
}

/* ------------------------------------------------------------------------------------------------------ expansions */

gmxfmm_status fmm_cuda_reserve_leaves(gmxfmm_plan* plan)
{
    fmm_device*   d      = plan->device;
    DeviceLeaves* leaves = &d->far.tree.leaves;
    leaves->stride       = (fmm_cuda_with_room(leaves->num) + 1 + 31) / 32 * 32;
    FMM_TRY(fmm_device_reserve(plan, &leaves->expansions,
                               static_cast<size_t>(d->far.num_coef) * leaves->stride * real_size(plan)));
    return fmm_cuda_reserve_scaled(plan);
}

Expansions fmm_cuda_leaves_expansions(const gmxfmm_plan* plan)
{
    const DeviceTree* tree = &plan->device->far.tree;
    Expansions        far;
    far.leaves.num    = tree->leaves.num;
    far.leaves.edge   = 1; /* no root has a background */
    far.leaves.stride = tree->leaves.stride;
    far.leaves.cell   = NULL;
    far.multipole = far.local = tree->leaves.expansions.memory;
    far.strain                = tree->strain.as<double>();
    return far;
}

/* Expansions between leaves and their cells. A thread has a leaf, the second index of the block is the coefficient. */
template <class R>
__global__ void __launch_bounds__(c_threads)
    to_cells(int num, const int* at, const R* leaves, size_t leaf_stride, R* multipole, size_t stride)
{
    const int    leaf = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    const size_t f    = blockIdx.y;
    if (leaf < num)
    {
        multipole[f * stride + at[leaf]] = leaves[f * leaf_stride + leaf];
    }
}

template <class R>
__global__ void __launch_bounds__(c_threads)
    to_leaves(int num, const int* at, const R* local, size_t stride, R* leaves, size_t leaf_stride)
{
    const int    leaf = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    const size_t f    = blockIdx.y;
    if (leaf < num)
    {
        leaves[f * leaf_stride + leaf] = local[f * stride + at[leaf]];
    }
}

static dim3 grid_of_leaves(const fmm_device* d)
{
    return dim3(static_cast<unsigned>(blocks_for(d->far.tree.leaves.num, c_threads)),
                static_cast<unsigned>(d->far.num_coef));
}

template <class R>
static void launch_to_cells(const fmm_device* d, cudaStream_t stream)
{
    const DeviceLeaves*     leaves = &d->far.tree.leaves;
    const fmm_octree_level* all    = &d->far.tree.level[0];
    to_cells<R><<<grid_of_leaves(d), c_threads, 0, stream>>>(leaves->num, leaves->at.as<int>(),
                                                             leaves->expansions.as<R>(), leaves->stride,
                                                             static_cast<R*>(all->multipole), all->stride);
}

template <class R>
static void launch_to_leaves(const fmm_device* d, cudaStream_t stream)
{
    const DeviceLeaves*     leaves = &d->far.tree.leaves;
    const fmm_octree_level* all    = &d->far.tree.level[0];
    to_leaves<R><<<grid_of_leaves(d), c_threads, 0, stream>>>(leaves->num, leaves->at.as<int>(),
                                                              static_cast<const R*>(all->local), all->stride,
                                                              leaves->expansions.as<R>(), leaves->stride);
}

gmxfmm_status fmm_cuda_leaves_to_cells(gmxfmm_plan* plan, cudaStream_t stream)
{
    is_double(plan) ? launch_to_cells<double>(plan->device, stream) : launch_to_cells<float>(plan->device, stream);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_cells_to_leaves(gmxfmm_plan* plan, cudaStream_t stream)
{
    is_double(plan) ? launch_to_leaves<double>(plan->device, stream) : launch_to_leaves<float>(plan->device, stream);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

/* Edges are powers of two, so that nothing is rounded. */
template <class R>
__global__ void __launch_bounds__(c_threads)
    from_leaf_units(int n, const int* cell_of, const fmm_leaf_place* place, Vec4<R>* field, Symmetric<R>* gradient)
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
        for (int i = 0; i < 6 && gradient != NULL; i++)
        {
            gradient[s].t[i] *= two * one;
        }
    }
}

template <class R>
static void launch_from_leaf_units(const fmm_device* d, const ParticleSet* targets, bool gradient, cudaStream_t stream)
{
    from_leaf_units<R><<<blocks_for(targets->n, c_threads), c_threads, 0, stream>>>(
        targets->n, targets->cell_of.as<int>(), d->far.tree.leaves.place.as<fmm_leaf_place>(),
        d->output.far.as<Vec4<R>>(), gradient ? d->output.far_gradient.as<Symmetric<R>>() : NULL);
}

gmxfmm_status fmm_cuda_from_leaf_units(gmxfmm_plan* plan, bool gradient, cudaStream_t stream)
{
    const fmm_device*  d       = plan->device;
    const ParticleSet* targets = targets_of(d);
    if (targets->n > 0)
    {
        is_double(plan) ? launch_from_leaf_units<double>(d, targets, gradient, stream)
                        : launch_from_leaf_units<float>(d, targets, gradient, stream);
        FMM_CUDA(plan, cudaGetLastError());
    }
    return GMXFMM_OK;
}
