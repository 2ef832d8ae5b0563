/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a treecode keeps on a device, and what its stages share: trees, lists, charges and results, all in memory of the
 * device. Particles, clusters and batches have 32-bit numbers, entries of lists 64-bit ones.
 */
#ifndef CUDA_TREECODE_STATE_H
#define CUDA_TREECODE_STATE_H

#include <vector>

#include <cuda_runtime.h>

extern "C"
{
#include "fmm/treecode/boxes.h"
#include "fmm/treecode/chebyshev.h"
#include "fmm/treecode/state.h"
}
#include "cuda/runtime/buffer.h"
#include "cuda/runtime/call.h"
#include "cuda/runtime/device_scope.h"
#include "cuda/runtime/shared_memory.h"
#include "cuda/treecode/tiles.h"

/* Clusters as kernels see them; the arrays are those of treecode_clusters. */
struct TreecodeTree
{
    int     n, num;
    double *x[3], *low, *high;
    int *   order, *begin, *end, *child, *num_children, *parent, *leaf;

    __device__ void box(int cluster, int d, double* centre, double* half) const
    {
        const double bottom = low[3 * (size_t)cluster + d];
        *half               = 0.5 * (high[3 * (size_t)cluster + d] - bottom);
        *centre             = bottom + *half;
    }
    /* The radius in (13): boxes.h. */
    __device__ double ball(int cluster, double centre[3], int widened) const
    {
        double half[3];
        for (int d = 0; d < 3; d++)
        {
            box(cluster, d, &centre[d], &half[d]);
        }
        return treecode_radius(half, widened);
    }
    __device__ int count(int cluster) const
    {
        return end[cluster] - begin[cluster];
    }
};

/* A tree, and its memory. */
struct DeviceClusters
{
    int              n = 0, num = 0, num_leaves = 0, capacity = 0; /* of clusters */
    std::vector<int> level;                                        /* first cluster of each level, and num */
    DeviceBuffer     x[3], low, high, order, begin, end, child, num_children, parent, leaf;

    TreecodeTree view() const
    {
        return {n,
                num,
                {x[0].as<double>(), x[1].as<double>(), x[2].as<double>()},
                low.as<double>(),
                high.as<double>(),
                order.as<int>(),
                begin.as<int>(),
                end.as<int>(),
                child.as<int>(),
                num_children.as<int>(),
                parent.as<int>(),
                leaf.as<int>()};
    }
};

/* A part of a batch: the targets of one block. */
struct TreecodeTile
{
    int batch, count, first;
};

/* Lists as kernels see them; the arrays are those of treecode_lists, targets counted by int. */
struct TreecodeBatches
{
    int            points;
    const int *    cluster, *begin, *end;
    const int64_t *approximated_start, *direct_start;
    const int *    approximated, *direct;
};

/* Lists, and their memory; tiles and parts: how sums.cu divides the work. */
struct DeviceLists
{
    int          num = 0, points = 0, num_tiles = 0, threads = 0, parts = 1;
    double       pairs = 0;
    DeviceBuffer cluster, begin, end, approximated_start, direct_start, approximated, direct, tile;

    TreecodeBatches view() const
    {
        return {points,
                cluster.as<int>(),
                begin.as<int>(),
                end.as<int>(),
                approximated_start.as<int64_t>(),
                direct_start.as<int64_t>(),
                approximated.as<int>(),
                direct.as<int>()};
    }
};

/* Values of one kind that all parts of lists have. */
static inline size_t treecode_part_values(const DeviceLists* l)
{
    return (size_t)l->parts * (size_t)l->num_tiles * (size_t)l->threads * c_tileTargets;
}

/* Results that are not arrays, on the device. */
struct TreecodeResults
{
    double             energy;
    unsigned long long bad_positions, bad_results; /* numbers that are not finite */
    unsigned long long bad_target;                 /* 1 + the last of the sorted targets with such results; 0: none */
};

struct treecode_device
{
    DeviceLimits   limits;
    AllowedKernels allowed; /* shared memory */
    int            multiprocessors = 0;
    cudaStream_t   stream          = nullptr;
    DeviceClusters sources, targets; /* targets: separate ones */
    DeviceLists    lists, point_lists, sample;
    const void *   x = nullptr, *y = nullptr; /* the caller's positions on the device, in an assign */
    DeviceBuffer   x_copy, y_copy; /* those of the host; the former has results on their way there, too, since
                                    * positions are no longer needed then */
    std::vector<char> host_copy;   /* arrays of the device on the host */
    void*             staging[2] = {nullptr, nullptr}; /* of the host, pinned: on its way from or to the caller */
    cudaEvent_t       staged[2]  = {nullptr, nullptr}; /* the device has taken or filled it */
    DeviceBuffer      q, sorted_q;                     /* charges in the caller's order and in that of the tree */
    DeviceBuffer      charge, point;    /* modified charges; potentials at the points of target clusters (dual) */
    DeviceBuffer      phi, slope[3];    /* results in the order of the targets' tree */
    DeviceBuffer      partial;          /* sums of the parts of lists */
    DeviceBuffer      energies;         /* sums of blocks */
    DeviceBuffer      results;          /* TreecodeResults */
    DeviceBuffer      scratch, work[8]; /* of an assign */
};

/* Chebyshev points (6), by value to kernels. */
struct TreecodePoints
{
    double s[TREECODE_MAX_EDGE];
};

static inline TreecodePoints treecode_points(int degree)
{
    TreecodePoints points;
    chebyshev_points(degree, points.s);
    return points;
}

enum
{
    c_staging      = 8 << 20, /* bytes that are staged at a time */
    c_energyBlocks = 256      /* whose sums of the energy are added up at the end */
};

/* Blocks of that many threads for so many tasks; one at the least, since a grid must not be empty. */
static inline unsigned treecode_blocks(int64_t tasks, int threads)
{
    return (unsigned)(tasks > 0 ? (tasks + threads - 1) / threads : 1);
}

/* Of x_copy: positions, or potential, field and force. */
static inline size_t treecode_copy_bytes(const treecode* t)
{
    const size_t word = t->options.floats ? sizeof(float) : sizeof(double);
    const size_t x = 3 * (size_t)t->n, results = (t->ranks != nullptr ? 4 : 7) * (size_t)t->num_targets;
    return (x > results ? x : results) * word;
}

/* Of call.h. */
gmxfmm_status fmm_cuda_failed(treecode* t, cudaError_t error, const char* call, const char* file, int line);

static inline const DeviceClusters* treecode_device_targets(const treecode* t)
{
    return t->separate ? &t->device->targets : &t->device->sources;
}

#endif
