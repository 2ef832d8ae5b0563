/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Dual traversal as in src/fmm/treecode/dual.c, in rounds: each pair of clusters of a round is far, and goes
 * into one of four lists, or is opened, and its parts are pairs of the next round. Numbers are added up before anything
 * is written, so that pairs have the same order in every run. What was found is sorted by list and target, and
 * collected for each batch.
 */
#include "cuda/treecode/memory.h"
#include "cuda/treecode/stages.h"

#include <utility>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "cuda/treecode/tiles.h"

namespace
{

enum
{
    c_threads = 128
};

typedef unsigned long long Numbers; /* pairs found, times 2^32, and pairs of the next round */

struct Criterion
{
    TreecodeTree targets, sources;
    double       theta;
    int          points, widened;
};

__device__ treecode_decision decide(const Criterion& c, int2 p)
{
    const TreecodeTree &t = c.targets, &s = c.sources;
    double              x[3], y[3];
    const double        rx = t.ball(p.x, x, c.widened), ry = s.ball(p.y, y, c.widened);
    return treecode_decide(treecode_is_far(c.theta, x, rx, y, ry), rx >= ry, t.count(p.x) <= c.points,
                           s.count(p.y) <= c.points, t.num_children[p.x] > 0, s.num_children[p.y] > 0);
}

__global__ void __launch_bounds__(c_threads)
    decide_all(Criterion c, const int2* pair, int num, unsigned char* decision, Numbers* numbers)
{
    const int i = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (i < num)
    {
        const int kind = decide(c, pair[i]);
        decision[i]    = (unsigned char)kind;
        numbers[i]     = kind == TREECODE_OPEN_TARGETS   ? (Numbers)c.targets.num_children[pair[i].x]
                         : kind == TREECODE_OPEN_SOURCES ? (Numbers)c.sources.num_children[pair[i].y]
                                                         : 1ULL << 32;
    }
}

/* Keys: list and target. sums: of numbers, up to and with each pair. */
__global__ void __launch_bounds__(c_threads) sortOut(Criterion            c,
                                                     const int2*          pair,
                                                     int                  num,
                                                     const unsigned char* decision,
                                                     const Numbers*       sums,
                                                     int64_t              found,
                                                     unsigned*            key,
                                                     int*                 source,
                                                     int2*                next)
{
    const int i = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (i >= num)
    {
        return;
    }
    const Numbers before = i > 0 ? sums[i - 1] : 0;
    const int     kind   = decision[i];
    const int2    p      = pair[i];
    if (kind < TREECODE_OPEN_TARGETS)
    {
        const int64_t to = found + (int64_t)(before >> 32);
        key[to]          = (unsigned)(kind * c.targets.num + p.x);
        source[to]       = p.y;
        return;
    }
    const TreecodeTree& opened = kind == TREECODE_OPEN_TARGETS ? c.targets : c.sources;
    const int           which  = kind == TREECODE_OPEN_TARGETS ? p.x : p.y;
    next += before & 0xffffffffULL;
    for (int k = 0; k < opened.num_children[which]; k++)
    {
        const int child = opened.child[which] + k;
        next[k]         = kind == TREECODE_OPEN_TARGETS ? make_int2(child, p.y) : make_int2(p.x, child);
    }
}

/* start[key] of all keys, and one behind. */
__global__ void __launch_bounds__(c_threads) rowStarts(const unsigned* key, int64_t num, int rows, int64_t* start)
{
    const int64_t i = (int64_t)blockIdx.x * c_threads + threadIdx.x;
    if (i <= num)
    {
        const int first = i > 0 ? (int)key[i - 1] + 1 : 0, last = i < num ? (int)key[i] : rows;
        for (int row = first; row <= last; row++)
        {
            start[row] = i;
        }
    }
}

/* Rows of found pairs: those of list k begin at start + k num. */
struct Rows
{
    const int64_t* start;
    const int*     source;
    int            num; /* clusters of the targets */
};

/* Rows of a batch's cluster in a list, and, with above, of all clusters above it: how many, or written. */
__device__ int64_t collectRows(const Rows& rows, const int* parent, int kind, int cluster, bool above, int* to)
{
    int64_t count = 0;
    for (int c = cluster; c >= 0; c = above ? parent[c] : -1)
    {
        const int64_t row = (int64_t)kind * rows.num + c;
        for (int64_t i = rows.start[row]; i < rows.start[row + 1] && to != nullptr; i++)
        {
            to[count + i - rows.start[row]] = rows.source[i];
        }
        count += rows.start[row + 1] - rows.start[row];
    }
    return count;
}

template <bool fill>
__global__ void __launch_bounds__(c_threads) collect(Rows       rows,
                                                     const int* parent,
                                                     const int* cluster,
                                                     int        num,
                                                     bool       above,
                                                     int64_t*   approximatedStart,
                                                     int64_t*   directStart,
                                                     int*       approximated,
                                                     int*       direct)
{
    const int b = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (b >= num)
    {
        return;
    }
    const int     kinds = above ? TREECODE_DIRECT : TREECODE_CLUSTER_PARTICLE;
    const int64_t d     = collectRows(rows, parent, kinds, cluster[b], above, fill ? direct + directStart[b] : nullptr);
    const int64_t a =
        collectRows(rows, parent, kinds + 1, cluster[b], above, fill ? approximated + approximatedStart[b] : nullptr);
    if (!fill)
    {
        directStart[b + 1]       = d;
        approximatedStart[b + 1] = a;
    }
}

struct HasPoints
{
    TreecodeTree    tree;
    int             points;
    __device__ bool operator()(int cluster) const
    {
        return tree.count(cluster) > points;
    }
};

__global__ void __launch_bounds__(c_threads) pointBatches(const int* cluster, int num, int points, int* begin, int* end)
{
    const int b = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (b < num)
    {
        begin[b] = cluster[b] * points;
        end[b]   = (cluster[b] + 1) * points;
    }
}

/* Memory of a traversal. */
enum
{
    c_pair = 1, /* work[0] is that of single numbers */
    c_nextPair,
    c_decision,
    c_numbers,
    c_key,
    c_source,
    c_sorted /* keys, then sources */
};

gmxfmm_status addUp(treecode* t, Numbers* numbers, int num, Numbers* total)
{
    treecode_device* d     = t->device;
    size_t           bytes = 0;
    FMM_CUDA(t, cub::DeviceScan::InclusiveSum(nullptr, bytes, numbers, numbers, num, d->stream));
    FMM_TRY(treecode_grow(t, &d->scratch, bytes));
    FMM_CUDA(t, cub::DeviceScan::InclusiveSum(d->scratch.memory, bytes, numbers, numbers, num, d->stream));
    return treecode_download(t, total, numbers + num - 1, sizeof(*total));
}

/* Room for more found pairs, by halves, so that it seldom grows. */
gmxfmm_status reserveFound(treecode* t, int64_t num)
{
    for (int i : {c_key, c_source})
    {
        DeviceBuffer* buffer = &t->device->work[i];
        const size_t  bytes  = (size_t)num * sizeof(int);
        if (bytes > buffer->capacity)
        {
            FMM_TRY(treecode_grow_keep(t, buffer, bytes + bytes / 2));
        }
    }
    return GMXFMM_OK;
}

/* Keys and sources of all pairs, as they are found. */
gmxfmm_status findPairs(treecode* t, const Criterion& c, int64_t* found)
{
    treecode_device* d   = t->device;
    int              num = 1;
    *found               = 0;
    FMM_TRY(treecode_grow(t, &d->work[c_pair], sizeof(int2)));
    FMM_CUDA(t, cudaMemsetAsync(d->work[c_pair].memory, 0, sizeof(int2), d->stream));
    while (num > 0)
    {
        Numbers total = 0;
        FMM_TRY(treecode_grow(t, &d->work[c_decision], (size_t)num));
        FMM_TRY(treecode_grow(t, &d->work[c_numbers], (size_t)num * sizeof(Numbers)));
        decide_all<<<treecode_blocks(num, c_threads), c_threads, 0, d->stream>>>(
            c, d->work[c_pair].as<int2>(), num, d->work[c_decision].as<unsigned char>(),
            d->work[c_numbers].as<Numbers>());
        FMM_CUDA(t, cudaGetLastError());
        FMM_TRY(addUp(t, d->work[c_numbers].as<Numbers>(), num, &total));
        const int64_t more = (int64_t)(total >> 32), next = (int64_t)(total & 0xffffffffULL);
        if (next > INT32_MAX || *found + more > INT32_MAX)
        {
            return treecode_fail(
                t, GMXFMM_ERROR_MEMORY,
                "more than 2^31 pairs of clusters interact: use a larger leaf or theta, or traversal = "
                "particle");
        }
        FMM_TRY(reserveFound(t, *found + more));
        FMM_TRY(treecode_grow(t, &d->work[c_nextPair], (size_t)next * sizeof(int2)));
        sortOut<<<treecode_blocks(num, c_threads), c_threads, 0, d->stream>>>(
            c, d->work[c_pair].as<int2>(), num, d->work[c_decision].as<unsigned char>(),
            d->work[c_numbers].as<Numbers>(), *found, d->work[c_key].as<unsigned>(), d->work[c_source].as<int>(),
            d->work[c_nextPair].as<int2>());
        FMM_CUDA(t, cudaGetLastError());
        std::swap(d->work[c_pair].memory, d->work[c_nextPair].memory);
        std::swap(d->work[c_pair].capacity, d->work[c_nextPair].capacity);
        *found += more;
        num = (int)next;
    }
    return GMXFMM_OK;
}

/* Sorted by list and target; starts are left in the place of the pairs. */
gmxfmm_status makeRows(treecode* t, int64_t found, int num_targets, Rows* rows)
{
    treecode_device* d       = t->device;
    const int        num     = 4 * num_targets;
    size_t           bytes   = 0;
    int              bits    = 1;
    const size_t     sources = ((size_t)found + 31) / 32 * 32;
    while (((num - 1) >> bits) > 0)
    {
        bits++;
    }
    FMM_TRY(treecode_grow(t, &d->work[c_sorted], 2 * sources * sizeof(int)));
    unsigned* const key    = d->work[c_sorted].as<unsigned>();
    int* const      source = d->work[c_sorted].as<int>() + sources;
    for (int pass = 0; pass < 2; pass++)
    {
        FMM_CUDA(t, cub::DeviceRadixSort::SortPairs(pass == 0 ? nullptr : d->scratch.memory, bytes,
                                                    d->work[c_key].as<unsigned>(), key, d->work[c_source].as<int>(),
                                                    source, (int)found, 0, bits, d->stream));
        if (pass == 0)
        {
            FMM_TRY(treecode_grow(t, &d->scratch, bytes));
        }
    }
    FMM_TRY(treecode_grow(t, &d->work[c_pair], ((size_t)num + 1) * sizeof(int64_t)));
    rowStarts<<<treecode_blocks(found + 1, c_threads), c_threads, 0, d->stream>>>(key, found, num,
                                                                                  d->work[c_pair].as<int64_t>());
    FMM_CUDA(t, cudaGetLastError());
    *rows = {d->work[c_pair].as<int64_t>(), source, num_targets};
    return GMXFMM_OK;
}

gmxfmm_status fill(treecode* t, DeviceLists* lists, const Rows& rows, bool above, int64_t num_targets)
{
    const cudaStream_t stream = t->device->stream;
    const int*         parent = treecode_device_targets(t)->parent.as<int>();
    const unsigned     blocks = treecode_blocks(lists->num, c_threads);
    int64_t            totals[2];
    collect<false><<<blocks, c_threads, 0, stream>>>(rows, parent, lists->cluster.as<int>(), lists->num, above,
                                                     lists->approximated_start.as<int64_t>(),
                                                     lists->direct_start.as<int64_t>(), nullptr, nullptr);
    FMM_CUDA(t, cudaGetLastError());
    FMM_TRY(treecode_device_add_starts(t, lists, totals));
    collect<true><<<blocks, c_threads, 0, stream>>>(
        rows, parent, lists->cluster.as<int>(), lists->num, above, lists->approximated_start.as<int64_t>(),
        lists->direct_start.as<int64_t>(), lists->approximated.as<int>(), lists->direct.as<int>());
    FMM_CUDA(t, cudaGetLastError());
    return treecode_device_finish_lists(t, lists, num_targets);
}

/* Clusters of more particles than points. */
gmxfmm_status listPoints(treecode* t, const Criterion& c)
{
    treecode_device*                     d        = t->device;
    const int                            clusters = c.targets.num;
    const HasPoints                      has      = {c.targets, c.points};
    const thrust::counting_iterator<int> all(0);
    size_t                               bytes = 0;
    int                                  num   = 0;
    FMM_TRY(treecode_grow(t, &d->work[0], sizeof(int)));
    FMM_TRY(treecode_device_begin_lists(t, &d->point_lists, clusters)); /* room for all, at first */
    for (int pass = 0; pass < 2 && clusters > 0; pass++)
    {
        FMM_CUDA(t, cub::DeviceSelect::If(pass == 0 ? nullptr : d->scratch.memory, bytes, all,
                                          d->point_lists.cluster.as<int>(), d->work[0].as<int>(), clusters, has,
                                          d->stream));
        if (pass == 0)
        {
            FMM_TRY(treecode_grow(t, &d->scratch, bytes));
        }
    }
    if (clusters > 0)
    {
        FMM_TRY(treecode_download(t, &num, d->work[0].memory, sizeof(num)));
    }
    d->point_lists.num    = num;
    d->point_lists.points = 1;
    pointBatches<<<treecode_blocks(num, c_threads), c_threads, 0, d->stream>>>(
        d->point_lists.cluster.as<int>(), num, c.points, d->point_lists.begin.as<int>(), d->point_lists.end.as<int>());
    FMM_CUDA(t, cudaGetLastError());
    return GMXFMM_OK;
}

} // namespace

gmxfmm_status treecode_device_dual_lists(treecode* t)
{
    treecode_device*      d       = t->device;
    const DeviceClusters* targets = treecode_device_targets(t);
    const Criterion c = {targets->view(), d->sources.view(), t->options.theta, (int)treecode_cube(t->options.degree),
                         treecode_widens(t)};
    int64_t         found = 0;
    Rows            rows  = {};
    if ((double)targets->num * c.points > INT32_MAX)
    {
        return treecode_fail(t, GMXFMM_ERROR_MEMORY,
                             "%d clusters have more than 2^31 points: use a larger leaf or a lower degree",
                             targets->num);
    }
    FMM_TRY(treecode_device_leaf_batches(t, &d->lists, targets));
    FMM_TRY(listPoints(t, c));
    if (targets->num == 0 || d->sources.num == 0)
    {
        d->lists.num = d->point_lists.num = 0;
        return GMXFMM_OK;
    }
    FMM_TRY(findPairs(t, c, &found));
    FMM_TRY(makeRows(t, found, targets->num, &rows));
    FMM_TRY(fill(t, &d->lists, rows, true, t->num_targets));
    return d->point_lists.num > 0 ? fill(t, &d->point_lists, rows, false, (int64_t)d->point_lists.num * c.points)
                                  : GMXFMM_OK;
}
