/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tree on the device, cluster by cluster that of src/fmm/treecode/clusters.c: minimal boxes, split at midpoints
 * into 8, 4 or 2. Level by level all particles are sorted by a key, which is the place of their cluster among those
 * there are so far, and the part of it that they are in; a stable sort, so that particles keep their order within a
 * part, as on the CPU. Least and largest coordinates are the same in whatever order they are compared, so that atomics
 * on them change nothing from run to run.
 */
#include "cuda/treecode/memory.h"
#include "cuda/treecode/stages.h"

#include <climits>
#include <cmath>
#include <cstring>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "cuda/runtime/extent.h"
#include "cuda/runtime/recording.h"

namespace
{

enum
{
    c_threads = 256,
    c_slots   = 256 /* particles of a warp that looks for boxes */
};

typedef unsigned long long Bits;

/* Numbers to integers in the same order, and back. */
__device__ __forceinline__ Bits ordered(double x)
{
    const Bits bits = (Bits)__double_as_longlong(x);
    return bits >> 63 ? ~bits : bits | 1ULL << 63;
}

__device__ __forceinline__ double number(Bits bits)
{
    return __longlong_as_double((long long)(bits >> 63 ? bits & ~(1ULL << 63) : ~bits));
}

/* Widens low..high. */
template <class X>
gmxfmm_status widen(treecode* t, const void* x, int64_t n, const char* what, double low[3], double high[3])
{
    treecode_device* d = t->device;
    Extent           e;
    size_t           bytes = 0;
    if (n == 0)
    {
        return GMXFMM_OK;
    }
    memcpy(e.low, low, sizeof(e.low));
    memcpy(e.high, high, sizeof(e.high));
    e.bad                                       = INT_MAX;
    const PointExtent<X>                 points = {static_cast<const X*>(x), {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    const thrust::counting_iterator<int> all(0);
    FMM_TRY(treecode_grow(t, &d->work[0], sizeof(Extent)));
    Extent* const out = d->work[0].as<Extent>();
    FMM_CUDA(t,
             cub::DeviceReduce::TransformReduce(nullptr, bytes, all, out, (int)n, BothExtents{}, points, e, d->stream));
    FMM_TRY(treecode_grow(t, &d->scratch, bytes));
    FMM_CUDA(t, cub::DeviceReduce::TransformReduce(d->scratch.memory, bytes, all, out, (int)n, BothExtents{}, points, e,
                                                   d->stream));
    FMM_TRY(treecode_download(t, &e, out, sizeof(e)));
    memcpy(low, e.low, sizeof(e.low));
    memcpy(high, e.high, sizeof(e.high));
    return e.bad != INT_MAX ? treecode_not_finite(t, what, e.bad) : GMXFMM_OK;
}

/* What is built: the clusters so far, and those among them that particles are in, in the order of particles. */
struct Growing
{
    TreecodeTree tree;
    const int *  at, *present; /* of each particle's cluster, the place among those present; cluster at a place */
    double*      middle;       /* 3 a cluster: particles above it are in the upper part */
    Bits *       low, *high;   /* of tree.low and tree.high, while boxes are looked for */
    int          first;        /* of the level that is new */
};

__global__ void __launch_bounds__(c_threads) startBoxes(Growing g)
{
    const int i = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (i < 3 * (g.tree.num - g.first))
    {
        g.low[3 * (size_t)g.first + i]  = ~0ULL;
        g.high[3 * (size_t)g.first + i] = 0;
    }
}

__device__ __forceinline__ void widenBox(const Growing& g, int cluster, const double* low, const double* high)
{
    for (int d = 0; d < 3; d++)
    {
        atomicMin(&g.low[3 * (size_t)cluster + d], ordered(low[d]));
        atomicMax(&g.high[3 * (size_t)cluster + d], ordered(high[d]));
    }
}

/* Of all lanes. */
__device__ __forceinline__ void widenByWarp(const Growing& g, int cluster, double* low, double* high)
{
    for (int d = 0; d < 3; d++)
    {
        for (int step = 16; step > 0; step /= 2)
        {
            low[d]  = fmin(low[d], __shfl_xor_sync(0xffffffffU, low[d], step));
            high[d] = fmax(high[d], __shfl_xor_sync(0xffffffffU, high[d], step));
        }
    }
    if (threadIdx.x % 32 == 0)
    {
        widenBox(g, cluster, low, high);
    }
}

/* Positions in the tree's order, and boxes of the clusters of the new level. */
template <class X>
__global__ void __launch_bounds__(c_threads) boxes(Growing g, const X* x, double oneOver)
{
    const int warp = (int)((blockIdx.x * c_threads + threadIdx.x) / 32), lane = (int)(threadIdx.x % 32);
    const int first = warp * c_slots, last = min(first + c_slots, g.tree.n);
    int       whose  = -1; /* what low and high are of */
    double    low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
    for (int from = first; from < last; from += 32)
    {
        const bool there   = from + lane < last;
        const int  s       = there ? from + lane : last - 1;
        const int  cluster = g.present[g.at[s]], i = g.tree.order[s];
        const int  leading = __shfl_sync(0xffffffffU, cluster, 0);
        const bool one     = __all_sync(0xffffffffU, cluster == leading);
        double     y[3];
        for (int d = 0; d < 3; d++)
        {
            y[d] = (double)x[3 * (size_t)i + d] * oneOver;
            if (there)
            {
                g.tree.x[d][s] = y[d];
            }
        }
        if (whose >= g.first && (!one || leading != whose))
        {
            widenByWarp(g, whose, low, high);
        }
        if (!one && cluster >= g.first)
        {
            widenBox(g, cluster, y, y);
        }
        const bool begins = one && leading != whose;
        for (int d = 0; d < 3; d++)
        {
            low[d]  = begins ? y[d] : fmin(low[d], y[d]);
            high[d] = begins ? y[d] : fmax(high[d], y[d]);
        }
        whose = one ? leading : -1;
    }
    if (whose >= g.first)
    {
        widenByWarp(g, whose, low, high);
    }
}

/* Boxes of the new level as numbers, and where its clusters are split; *splits: how many are. */
__global__ void __launch_bounds__(c_threads) middles(Growing g, int leaf, int* splits)
{
    const int cluster = g.first + (int)(blockIdx.x * c_threads + threadIdx.x);
    if (cluster >= g.tree.num)
    {
        return;
    }
    double low[3], high[3], longest = 0;
    for (int d = 0; d < 3; d++)
    {
        const size_t at = 3 * (size_t)cluster + d;
        low[d]          = number(g.low[at]);
        high[d]         = number(g.high[at]);
        g.tree.low[at]  = low[d];
        g.tree.high[at] = high[d];
        longest         = fmax(longest, high[d] - low[d]);
    }
    const bool split = g.tree.count(cluster) > leaf && longest > 0;
    for (int d = 0; d < 3; d++)
    {
        g.middle[3 * (size_t)cluster + d] = split ? treecode_split_at(low[d], high[d], longest) : high[d];
    }
    g.tree.child[cluster]        = -1;
    g.tree.num_children[cluster] = split; /* for now: whether it is */
    if (split)
    {
        atomicAdd(splits, 1);
    }
}

__global__ void __launch_bounds__(c_threads) keys(Growing g, unsigned* key)
{
    const int s = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (s < g.tree.n)
    {
        const int place = g.at[s], cluster = g.present[place];
        int       part = 0;
        if (cluster >= g.first)
        {
            for (int d = 0; d < 3; d++)
            {
                part += (g.tree.x[d][s] > g.middle[3 * (size_t)cluster + d]) << d;
            }
        }
        key[s] = (unsigned)place * 8 + (unsigned)part;
    }
}

struct IsHead
{
    const unsigned* key;
    __device__ int  operator()(int s) const
    {
        return s > 0 && key[s] != key[s - 1];
    }
};

/* What is present after the sort: keys and where their particles begin. */
__global__ void __launch_bounds__(c_threads)
    heads(int n, const unsigned* key, const int* at, unsigned* presentKey, int* presentBegin)
{
    const int s = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (s < n && (s == 0 || key[s] != key[s - 1]))
    {
        presentKey[at[s]]   = key[s];
        presentBegin[at[s]] = s;
    }
}

struct IsNew
{
    const unsigned* presentKey;
    const int *     before, *num_children; /* what was present, and whether it was split */
    __device__ int  operator()(int i) const
    {
        return num_children[before[presentKey[i] / 8]] > 0;
    }
};

/* Clusters of the next level, from those that were split; rank: of the new ones among those present. */
__global__ void __launch_bounds__(c_threads) children(TreecodeTree    tree,
                                                      int             num_present,
                                                      const unsigned* key,
                                                      const int*      begin,
                                                      const int*      rank,
                                                      const int*      before,
                                                      int             next,
                                                      int*            present)
{
    const int i = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (i >= num_present)
    {
        return;
    }
    const int parent = before[key[i] / 8];
    if (tree.num_children[parent] == 0)
    {
        present[i] = parent;
        return;
    }
    const int id    = next + rank[i];
    present[i]      = id;
    tree.begin[id]  = begin[i];
    tree.end[id]    = i + 1 < num_present ? begin[i + 1] : tree.n;
    tree.parent[id] = parent;
    if (i == 0 || key[i - 1] / 8 != key[i] / 8)
    {
        tree.child[parent] = id;
    }
}

__global__ void __launch_bounds__(c_threads)
    countChildren(TreecodeTree tree, int num_present, const unsigned* key, const int* before)
{
    const int i = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (i >= num_present || (i > 0 && key[i - 1] / 8 == key[i] / 8) || tree.num_children[before[key[i] / 8]] == 0)
    {
        return;
    }
    int num = 1;
    while (i + num < num_present && key[i + num] / 8 == key[i] / 8)
    {
        num++;
    }
    tree.num_children[before[key[i] / 8]] = num;
}

struct IsLeaf
{
    const int*     num_children;
    __device__ int operator()(int cluster) const
    {
        return num_children[cluster] == 0;
    }
};

__global__ void __launch_bounds__(c_threads) leaves(TreecodeTree tree, const int* rank)
{
    const int cluster = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (cluster < tree.num && tree.num_children[cluster] == 0)
    {
        tree.leaf[rank[cluster]] = cluster;
    }
}

__global__ void __launch_bounds__(c_threads) startTree(TreecodeTree tree, int* at, int* present)
{
    const int s = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (s < tree.n)
    {
        tree.order[s] = s;
        at[s]         = 0;
    }
    if (s == 0)
    {
        present[0]     = 0;
        tree.begin[0]  = 0;
        tree.end[0]    = tree.n;
        tree.parent[0] = -1;
    }
}

/* Memory of a build: two of each for those that are sorted or replaced. */
enum
{
    c_at,
    c_key,
    c_sortedKey,
    c_order, /* the tree's, on its way to another one */
    c_present,
    c_otherPresent,
    c_begin,
    c_middle
};

template <class Operation>
gmxfmm_status scan(treecode* t, bool inclusive, Operation operation, int* out, int num)
{
    treecode_device* d     = t->device;
    size_t           bytes = 0;
    const auto       in    = thrust::make_transform_iterator(thrust::counting_iterator<int>(0), operation);
    for (int pass = 0; pass < 2; pass++)
    {
        void* const memory = pass == 0 ? nullptr : d->scratch.memory;
        FMM_CUDA(t, inclusive ? cub::DeviceScan::InclusiveSum(memory, bytes, in, out, num, d->stream)
                              : cub::DeviceScan::ExclusiveSum(memory, bytes, in, out, num, d->stream));
        if (pass == 0)
        {
            FMM_TRY(treecode_grow(t, &d->scratch, bytes));
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status sort(treecode* t, DeviceClusters* tree, int num_present)
{
    treecode_device* d     = t->device;
    size_t           bytes = 0;
    int              bits  = 3;
    while (((num_present - 1) >> (bits - 3)) > 0)
    {
        bits++;
    }
    for (int pass = 0; pass < 2; pass++)
    {
        FMM_CUDA(t, cub::DeviceRadixSort::SortPairs(pass == 0 ? nullptr : d->scratch.memory, bytes,
                                                    d->work[c_key].as<unsigned>(), d->work[c_sortedKey].as<unsigned>(),
                                                    tree->order.as<int>(), d->work[c_order].as<int>(), tree->n, 0, bits,
                                                    d->stream));
        if (pass == 0)
        {
            FMM_TRY(treecode_grow(t, &d->scratch, bytes));
        }
    }
    std::swap(tree->order.memory, d->work[c_order].memory);
    std::swap(tree->order.capacity, d->work[c_order].capacity);
    return GMXFMM_OK;
}

Growing growing(treecode_device* d, DeviceClusters* tree, int first)
{
    Growing g;
    g.tree    = tree->view();
    g.at      = d->work[c_at].as<int>();
    g.present = d->work[c_present].as<int>();
    g.middle  = d->work[c_middle].as<double>();
    g.low     = tree->low.as<Bits>();
    g.high    = tree->high.as<Bits>();
    g.first   = first;
    return g;
}

/* Splits the clusters of the last level, if any, and adds those that come of it; *more: whether there are. */
template <class X>
gmxfmm_status addLevel(treecode* t, DeviceClusters* tree, const X* x, int* num_present, bool* more)
{
    treecode_device* d     = t->device;
    const int        first = tree->level[tree->level.size() - 2], n = tree->n;
    const Growing    g = growing(d, tree, first);
    int*             splits;
    int              num_splits = 0, last = 0;
    FMM_TRY(treecode_grow(t, &d->results, sizeof(TreecodeResults)));
    splits = d->results.as<int>();
    FMM_CUDA(t, cudaMemsetAsync(splits, 0, sizeof(int), d->stream));
    startBoxes<<<treecode_blocks(3 * (int64_t)(tree->num - first), c_threads), c_threads, 0, d->stream>>>(g);
    boxes<<<treecode_blocks((n + c_slots - 1) / c_slots * 32LL, c_threads), c_threads, 0, d->stream>>>(g, x,
                                                                                                       1 / t->unit);
    middles<<<treecode_blocks(tree->num - first, c_threads), c_threads, 0, d->stream>>>(
        g, (int)(t->options.leaf < INT_MAX ? t->options.leaf : INT_MAX), splits);
    FMM_CUDA(t, cudaGetLastError());
    FMM_TRY(treecode_download(t, &num_splits, splits, sizeof(int)));
    *more = num_splits > 0;
    if (!*more)
    {
        return GMXFMM_OK;
    }
    unsigned* const key = d->work[c_sortedKey].as<unsigned>();
    keys<<<treecode_blocks(n, c_threads), c_threads, 0, d->stream>>>(g, d->work[c_key].as<unsigned>());
    FMM_CUDA(t, cudaGetLastError());
    FMM_TRY(sort(t, tree, *num_present));
    FMM_TRY(scan(t, true, IsHead{key}, d->work[c_at].as<int>(), n));
    FMM_TRY(treecode_download(t, &last, d->work[c_at].as<int>() + n - 1, sizeof(int)));
    /* a cluster that is split gives way to its children */
    const int now = last + 1, added = now - (*num_present - num_splits);
    FMM_TRY(treecode_device_reserve_clusters(t, tree, tree->num + added));
    FMM_TRY(treecode_grow_keep(t, &d->work[c_present], (size_t)now * sizeof(int)));
    FMM_TRY(treecode_grow(t, &d->work[c_otherPresent], (size_t)now * sizeof(int)));
    FMM_TRY(treecode_grow(t, &d->work[c_begin], 2 * (size_t)now * sizeof(int)));
    /* keys before the sort are no longer needed */
    unsigned* const presentKey   = d->work[c_key].as<unsigned>();
    int* const      presentBegin = d->work[c_begin].as<int>();
    int* const      rank         = presentBegin + now;
    const int*      before       = d->work[c_present].as<int>();
    heads<<<treecode_blocks(n, c_threads), c_threads, 0, d->stream>>>(n, key, d->work[c_at].as<int>(), presentKey,
                                                                      presentBegin);
    FMM_CUDA(t, cudaGetLastError());
    FMM_TRY(scan(t, false, IsNew{presentKey, before, tree->num_children.as<int>()}, rank, now));
    const TreecodeTree view   = tree->view();
    const unsigned     blocks = treecode_blocks(now, c_threads);
    children<<<blocks, c_threads, 0, d->stream>>>(view, now, presentKey, presentBegin, rank, before, tree->num,
                                                  d->work[c_otherPresent].as<int>());
    countChildren<<<blocks, c_threads, 0, d->stream>>>(view, now, presentKey, before);
    FMM_CUDA(t, cudaGetLastError());
    std::swap(d->work[c_present].memory, d->work[c_otherPresent].memory);
    std::swap(d->work[c_present].capacity, d->work[c_otherPresent].capacity);
    *num_present = now;
    tree->num += added;
    tree->level.push_back(tree->num);
    return GMXFMM_OK;
}

template <class X>
gmxfmm_status build(treecode* t, DeviceClusters* tree, int64_t n, const void* x)
{
    treecode_device* d = t->device;
    tree->n            = (int)n;
    tree->num = tree->num_leaves = 0;
    tree->level.assign(1, 0);
    FMM_TRY(treecode_device_reserve_clusters(t, tree, 1));
    FMM_TRY(treecode_grow(t, &tree->leaf, sizeof(int)));
    for (DeviceBuffer& coordinate : tree->x)
    {
        FMM_TRY(treecode_grow(t, &coordinate, (size_t)n * sizeof(double)));
    }
    FMM_TRY(treecode_grow(t, &tree->order, (size_t)n * sizeof(int)));
    if (n == 0)
    {
        return GMXFMM_OK;
    }
    for (int i : {c_at, c_key, c_sortedKey, c_order})
    {
        FMM_TRY(treecode_grow(t, &d->work[i], (size_t)n * sizeof(int)));
    }
    FMM_TRY(treecode_grow(t, &d->work[c_present], sizeof(int)));
    startTree<<<treecode_blocks(n, c_threads), c_threads, 0, d->stream>>>(tree->view(), d->work[c_at].as<int>(),
                                                                          d->work[c_present].as<int>());
    FMM_CUDA(t, cudaGetLastError());
    tree->num = 1;
    tree->level.push_back(1);
    int  num_present = 1;
    bool more        = true;
    while (more)
    {
        FMM_TRY(addLevel(t, tree, static_cast<const X*>(x), &num_present, &more));
    }
    tree->num_leaves = num_present;
    FMM_TRY(treecode_grow(t, &tree->leaf, (size_t)num_present * sizeof(int)));
    FMM_TRY(treecode_grow(t, &d->work[c_begin], (size_t)tree->num * sizeof(int)));
    FMM_TRY(scan(t, false, IsLeaf{tree->num_children.as<int>()}, d->work[c_begin].as<int>(), tree->num));
    leaves<<<treecode_blocks(tree->num, c_threads), c_threads, 0, d->stream>>>(tree->view(),
                                                                               d->work[c_begin].as<int>());
    FMM_CUDA(t, cudaGetLastError());
    return GMXFMM_OK;
}

/* Numbers alone, as info has them. */
void count(treecode_clusters* c, const DeviceClusters* tree)
{
    c->n          = tree->n;
    c->num        = tree->num;
    c->num_levels = (int)tree->level.size() - 1;
    c->num_leaves = tree->num_leaves;
}

gmxfmm_status widenNumbers(treecode* t, const DeviceBuffer& from, std::vector<int>* buffer, int64_t* to, int num)
{
    buffer->resize((size_t)num);
    FMM_TRY(treecode_download(t, buffer->data(), from.memory, (size_t)num * sizeof(int)));
    for (int i = 0; i < num; i++)
    {
        to[i] = (*buffer)[(size_t)i];
    }
    return GMXFMM_OK;
}

gmxfmm_status copyTree(treecode* t, treecode_clusters* c, const DeviceClusters* tree, bool with_particles)
{
    const size_t     num = (size_t)tree->num, n = (size_t)tree->n;
    std::vector<int> buffer;
    treecode_clusters_free(c);
    if (treecode_clusters_reserve(c, with_particles ? tree->n : 0, tree->num, (int)tree->level.size() - 1,
                                  tree->num_leaves))
    {
        return treecode_no_memory(t);
    }
    count(c, tree);
    memcpy(c->level, tree->level.data(), tree->level.size() * sizeof(int));
    FMM_TRY(treecode_download(t, c->leaf, tree->leaf.memory, (size_t)tree->num_leaves * sizeof(int)));
    FMM_TRY(treecode_download(t, c->child, tree->child.memory, num * sizeof(int)));
    FMM_TRY(treecode_download(t, c->num_children, tree->num_children.memory, num * sizeof(int)));
    FMM_TRY(treecode_download(t, c->low, tree->low.memory, 3 * num * sizeof(double)));
    FMM_TRY(treecode_download(t, c->high, tree->high.memory, 3 * num * sizeof(double)));
    FMM_TRY(widenNumbers(t, tree->begin, &buffer, c->begin, tree->num));
    FMM_TRY(widenNumbers(t, tree->end, &buffer, c->end, tree->num));
    if (with_particles)
    {
        FMM_TRY(widenNumbers(t, tree->order, &buffer, c->order, tree->n));
        for (int d = 0; d < 3; d++)
        {
            FMM_TRY(treecode_download(t, c->x[d], tree->x[d].memory, n * sizeof(double)));
        }
    }
    return GMXFMM_OK;
}

} // namespace

gmxfmm_status treecode_device_reserve_clusters(treecode* t, DeviceClusters* tree, int num)
{
    if (num > tree->capacity)
    {
        const size_t        more       = (size_t)num + (size_t)num / 2;
        DeviceBuffer* const integers[] = {&tree->begin, &tree->end, &tree->child, &tree->num_children, &tree->parent};
        for (DeviceBuffer* buffer : integers)
        {
            FMM_TRY(treecode_grow_keep(t, buffer, more * sizeof(int)));
        }
        FMM_TRY(treecode_grow_keep(t, &tree->low, 3 * more * sizeof(double)));
        FMM_TRY(treecode_grow_keep(t, &tree->high, 3 * more * sizeof(double)));
        tree->capacity = (int)more;
    }
    return treecode_grow(t, &t->device->work[c_middle], 3 * (size_t)tree->capacity * sizeof(double));
}

gmxfmm_status treecode_device_extent(treecode* t, double low[3], double high[3])
{
    DeviceScope      scope(t->options.device_id);
    treecode_device* d    = t->device;
    const size_t     word = t->options.floats ? sizeof(float) : sizeof(double);
    d->x                  = t->x;
    d->y                  = t->y;
    FMM_CUDA(t, fmm_cuda_wait_for_device());                       /* whatever makes the arrays is done */
    FMM_TRY(treecode_grow(t, &d->x_copy, treecode_copy_bytes(t))); /* all of it: x stays where it is until the next */
    FMM_TRY(treecode_on_device(t, &d->x, &d->x_copy, 3 * (size_t)t->n * word));
    FMM_TRY(t->options.floats ? widen<float>(t, d->x, t->n, "particle", low, high)
                              : widen<double>(t, d->x, t->n, "particle", low, high));
    if (!t->separate)
    {
        return GMXFMM_OK;
    }
    FMM_TRY(treecode_on_device(t, &d->y, &d->y_copy, 3 * (size_t)t->num_targets * sizeof(double)));
    return widen<double>(t, d->y, t->num_targets, "target", low, high);
}

gmxfmm_status treecode_device_trees(treecode* t)
{
    DeviceScope      scope(t->options.device_id);
    treecode_device* d = t->device;
    FMM_TRY(t->options.floats ? build<float>(t, &d->sources, t->n, d->x) : build<double>(t, &d->sources, t->n, d->x));
    count(&t->sources, &d->sources);
    if (t->separate)
    {
        FMM_TRY(build<double>(t, &d->targets, t->num_targets, d->y));
        count(&t->own_targets, &d->targets);
    }
    FMM_CUDA(t, cudaStreamSynchronize(d->stream));
    return GMXFMM_OK;
}

gmxfmm_status treecode_device_mirror(treecode* t, int with_particles)
{
    DeviceScope scope(t->options.device_id);
    FMM_TRY(copyTree(t, &t->sources, &t->device->sources, with_particles != 0));
    return t->separate ? copyTree(t, &t->own_targets, &t->device->targets, with_particles != 0) : GMXFMM_OK;
}
