/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lists of batches as src/fmm/treecode/lists.c makes them, a thread a batch: one traversal counts, another writes. No
 * stack: behind a cluster that is not opened, a traversal goes on with the next one that is not below it, which is
 * known beforehand. And tiles: how the targets of a batch are divided among blocks.
 */
#include "cuda/treecode/memory.h"
#include "cuda/treecode/stages.h"

#include <algorithm>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "cuda/treecode/tiles.h"

namespace
{

enum
{
    c_threads = 64 /* few, so that all multiprocessors have some batches */
};

/* What a traversal reads of a cluster. */
struct alignas(16) Node
{
    double centre[3], radius;
    int    count, child, next, unused; /* child: -1 without children; next: -1 at the end */
};

__global__ void __launch_bounds__(c_threads) nodes(TreecodeTree tree, int widened, Node* node)
{
    const int cluster = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (cluster >= tree.num)
    {
        return;
    }
    Node own;
    own.radius = tree.ball(cluster, own.centre, widened);
    own.count  = tree.count(cluster);
    own.child  = tree.num_children[cluster] > 0 ? tree.child[cluster] : -1;
    own.unused = 0;
    own.next   = -1;
    /* the next sibling, or that of the nearest one above that has one */
    for (int c = cluster; tree.parent[c] >= 0; c = tree.parent[c])
    {
        const int parent = tree.parent[c];
        if (c + 1 < tree.child[parent] + tree.num_children[parent])
        {
            own.next = c + 1;
            break;
        }
    }
    node[cluster] = own;
}

struct Criterion
{
    const Node* node;
    double      theta;
    int         points, num; /* (n + 1)^3; clusters */
};

/* fill: writes, otherwise counts, into the starts of the next batch. */
template <bool fill>
__global__ void __launch_bounds__(c_threads) traverse(Criterion       c,
                                                      TreecodeTree    targets,
                                                      TreecodeBatches lists,
                                                      int             num,
                                                      int64_t*        approximatedStart,
                                                      int64_t*        directStart,
                                                      int*            approximated,
                                                      int*            direct)
{
    const int b = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (b >= num)
    {
        return;
    }
    double       centre[3];
    const double radius = targets.ball(lists.cluster[b], centre, 0);
    int64_t      a = fill ? approximatedStart[b] : 0, p = fill ? directStart[b] : 0;
    int          cluster = c.num > 0 ? 0 : -1;
    while (cluster >= 0)
    {
        const Node node  = c.node[cluster];
        const bool large = node.count > c.points;
        if (large && treecode_is_far(c.theta, centre, radius, node.centre, node.radius))
        {
            if (fill)
            {
                approximated[a] = cluster;
            }
            a++;
            cluster = node.next;
        }
        else if (!large || node.child < 0)
        {
            if (fill)
            {
                direct[p] = cluster;
            }
            p++;
            cluster = node.next;
        }
        else
        {
            cluster = node.child;
        }
    }
    if (!fill)
    {
        approximatedStart[b + 1] = a;
        directStart[b + 1]       = p;
    }
}

struct BatchPairs
{
    TreecodeBatches    lists;
    TreecodeTree       sources;
    int64_t            points;
    __device__ int64_t operator()(int b) const
    {
        int64_t num_sources = (lists.approximated_start[b + 1] - lists.approximated_start[b]) * points;
        for (int64_t i = lists.direct_start[b]; i < lists.direct_start[b + 1]; i++)
        {
            num_sources += sources.count(lists.direct[i]);
        }
        return num_sources * (lists.end[b] - lists.begin[b]);
    }
};

__global__ void __launch_bounds__(c_threads) leafBatches(TreecodeTree tree, int num, int* cluster, int* begin, int* end)
{
    const int b = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (b < num)
    {
        cluster[b] = tree.leaf[b];
        begin[b]   = tree.begin[tree.leaf[b]];
        end[b]     = tree.end[tree.leaf[b]];
    }
}

struct BatchTiles
{
    const int *    begin, *end;
    int            threads;
    __device__ int operator()(int b) const
    {
        return treecode_num_tiles(end[b] - begin[b], threads);
    }
};

/* last[b]: tiles of batches up to b. */
__global__ void __launch_bounds__(c_threads)
    writeTiles(TreecodeBatches lists, int num, int threads, const int* last, TreecodeTile* tile)
{
    const int b = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (b >= num)
    {
        return;
    }
    const int count = lists.end[b] - lists.begin[b], tiles = treecode_num_tiles(count, threads);
    for (int k = 0; k < tiles; k++)
    {
        const int first           = treecode_tile_begin(count, tiles, k);
        tile[last[b] - tiles + k] = {b, treecode_tile_begin(count, tiles, k + 1) - first, lists.begin[b] + first};
    }
}

template <class In, class Out>
gmxfmm_status inclusiveSum(treecode* t, In in, Out* out, int num)
{
    treecode_device* d     = t->device;
    size_t           bytes = 0;
    FMM_CUDA(t, cub::DeviceScan::InclusiveSum(nullptr, bytes, in, out, num, d->stream));
    FMM_TRY(treecode_grow(t, &d->scratch, bytes));
    FMM_CUDA(t, cub::DeviceScan::InclusiveSum(d->scratch.memory, bytes, in, out, num, d->stream));
    return GMXFMM_OK;
}

gmxfmm_status countPairs(treecode* t, DeviceLists* lists)
{
    treecode_device* d     = t->device;
    const int64_t    edge  = t->options.degree + 1;
    size_t           bytes = 0;
    int64_t          pairs = 0;
    const BatchPairs of    = {lists->view(), d->sources.view(), edge * edge * edge};
    const auto       in    = thrust::make_transform_iterator(thrust::counting_iterator<int>(0), of);
    FMM_TRY(treecode_grow(t, &d->work[0], sizeof(int64_t)));
    FMM_CUDA(t, cub::DeviceReduce::Sum(nullptr, bytes, in, d->work[0].as<int64_t>(), lists->num, d->stream));
    FMM_TRY(treecode_grow(t, &d->scratch, bytes));
    FMM_CUDA(t, cub::DeviceReduce::Sum(d->scratch.memory, bytes, in, d->work[0].as<int64_t>(), lists->num, d->stream));
    FMM_TRY(treecode_download(t, &pairs, d->work[0].memory, sizeof(pairs)));
    lists->pairs = (double)pairs;
    return GMXFMM_OK;
}

} // namespace

gmxfmm_status treecode_device_begin_lists(treecode* t, DeviceLists* lists, int num)
{
    const size_t room = (size_t)num + 1;
    lists->num        = num;
    lists->points     = 0;
    lists->num_tiles  = 0;
    lists->parts      = 1;
    lists->pairs      = 0;
    FMM_TRY(treecode_grow(t, &lists->cluster, room * sizeof(int)));
    FMM_TRY(treecode_grow(t, &lists->begin, room * sizeof(int)));
    FMM_TRY(treecode_grow(t, &lists->end, room * sizeof(int)));
    FMM_TRY(treecode_grow(t, &lists->approximated_start, room * sizeof(int64_t)));
    FMM_TRY(treecode_grow(t, &lists->direct_start, room * sizeof(int64_t)));
    FMM_CUDA(t, cudaMemsetAsync(lists->approximated_start.memory, 0, sizeof(int64_t), t->device->stream));
    FMM_CUDA(t, cudaMemsetAsync(lists->direct_start.memory, 0, sizeof(int64_t), t->device->stream));
    return GMXFMM_OK;
}

gmxfmm_status treecode_device_add_starts(treecode* t, DeviceLists* lists, int64_t totals[2])
{
    int64_t* const starts[2] = {lists->approximated_start.as<int64_t>(), lists->direct_start.as<int64_t>()};
    totals[0] = totals[1] = 0;
    for (int i = 0; i < 2 && lists->num > 0; i++)
    {
        FMM_TRY(inclusiveSum(t, starts[i] + 1, starts[i] + 1, lists->num));
        FMM_TRY(treecode_download(t, &totals[i], starts[i] + lists->num, sizeof(int64_t)));
    }
    FMM_TRY(treecode_grow(t, &lists->approximated, (size_t)totals[0] * sizeof(int)));
    return treecode_grow(t, &lists->direct, (size_t)totals[1] * sizeof(int));
}

gmxfmm_status treecode_device_leaf_batches(treecode* t, DeviceLists* lists, const DeviceClusters* tree)
{
    FMM_TRY(treecode_device_begin_lists(t, lists, tree->num_leaves));
    leafBatches<<<treecode_blocks(lists->num, c_threads), c_threads, 0, t->device->stream>>>(
        tree->view(), lists->num, lists->cluster.as<int>(), lists->begin.as<int>(), lists->end.as<int>());
    FMM_CUDA(t, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status treecode_device_finish_lists(treecode* t, DeviceLists* lists, int64_t num_targets)
{
    treecode_device* d = t->device;
    if (lists->num == 0)
    {
        return GMXFMM_OK;
    }
    FMM_TRY(countPairs(t, lists));
    lists->threads      = treecode_tile_threads(num_targets, lists->num);
    const BatchTiles of = {lists->begin.as<int>(), lists->end.as<int>(), lists->threads};
    const auto       in = thrust::make_transform_iterator(thrust::counting_iterator<int>(0), of);
    FMM_TRY(treecode_grow(t, &d->work[0], (size_t)lists->num * sizeof(int)));
    int* const last = d->work[0].as<int>();
    FMM_TRY(inclusiveSum(t, in, last, lists->num));
    FMM_TRY(treecode_download(t, &lists->num_tiles, last + lists->num - 1, sizeof(int)));
    FMM_TRY(treecode_grow(t, &lists->tile, (size_t)lists->num_tiles * sizeof(TreecodeTile)));
    writeTiles<<<treecode_blocks(lists->num, c_threads), c_threads, 0, d->stream>>>(
        lists->view(), lists->num, lists->threads, last, lists->tile.as<TreecodeTile>());
    FMM_CUDA(t, cudaGetLastError());
    lists->parts = treecode_num_parts(lists->num_tiles, lists->threads, d->multiprocessors);
    FMM_TRY(treecode_grow(t, &d->partial, lists->parts > 1 ? 4 * treecode_part_values(lists) * sizeof(double) : 0));
    FMM_CUDA(t, cudaStreamSynchronize(d->stream));
    return GMXFMM_OK;
}

gmxfmm_status treecode_device_upload_lists(treecode* t, DeviceLists* to, const treecode_lists* lists)
{
    const size_t     num = (size_t)lists->num;
    std::vector<int> begin(num), end(num);
    int64_t          targets = 0;
    FMM_TRY(treecode_device_begin_lists(t, to, lists->num));
    to->points = lists->points;
    for (size_t b = 0; b < num; b++)
    {
        begin[b] = (int)lists->begin[b];
        end[b]   = (int)lists->end[b];
        targets += end[b] - begin[b];
    }
    if (num > 0)
    {
        FMM_TRY(treecode_upload(t, &to->cluster, lists->cluster, num * sizeof(int)));
        FMM_TRY(treecode_upload(t, &to->begin, begin.data(), num * sizeof(int)));
        FMM_TRY(treecode_upload(t, &to->end, end.data(), num * sizeof(int)));
        FMM_TRY(treecode_upload(t, &to->approximated_start, lists->approximated_start, (num + 1) * sizeof(int64_t)));
        FMM_TRY(treecode_upload(t, &to->direct_start, lists->direct_start, (num + 1) * sizeof(int64_t)));
        FMM_TRY(treecode_upload(t, &to->approximated, lists->approximated,
                                (size_t)lists->approximated_start[num] * sizeof(int)));
        FMM_TRY(treecode_upload(t, &to->direct, lists->direct, (size_t)lists->direct_start[num] * sizeof(int)));
    }
    FMM_CUDA(t, cudaStreamSynchronize(t->device->stream)); /* the host's arrays may go */
    return treecode_device_finish_lists(t, to, targets);
}

gmxfmm_status treecode_device_lists(treecode* t)
{
    treecode_device*      d       = t->device;
    DeviceLists*          lists   = &d->lists;
    const DeviceClusters* targets = treecode_device_targets(t);
    int64_t               totals[2];
    FMM_TRY(treecode_device_leaf_batches(t, lists, targets));
    FMM_TRY(treecode_grow(t, &d->work[1], (size_t)d->sources.num * sizeof(Node)));
    const Criterion c = {d->work[1].as<Node>(), t->options.theta, (int)treecode_cube(t->options.degree),
                         d->sources.num};
    nodes<<<treecode_blocks(d->sources.num, c_threads), c_threads, 0, d->stream>>>(
        d->sources.view(), treecode_widens(t), d->work[1].as<Node>());
    traverse<false><<<treecode_blocks(lists->num, c_threads), c_threads, 0, d->stream>>>(
        c, targets->view(), lists->view(), lists->num, lists->approximated_start.as<int64_t>(),
        lists->direct_start.as<int64_t>(), nullptr, nullptr);
    FMM_CUDA(t, cudaGetLastError());
    FMM_TRY(treecode_device_add_starts(t, lists, totals));
    traverse<true><<<treecode_blocks(lists->num, c_threads), c_threads, 0, d->stream>>>(
        c, targets->view(), lists->view(), lists->num, lists->approximated_start.as<int64_t>(),
        lists->direct_start.as<int64_t>(), lists->approximated.as<int>(), lists->direct.as<int>());
    FMM_CUDA(t, cudaGetLastError());
    return treecode_device_finish_lists(t, lists, t->num_targets);
}
