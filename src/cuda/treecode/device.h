/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The device part of a treecode: trees, lists, modified charges and sums are all made there, by stages that put kernels
 * on d->stream. Those of an assign (extent, trees, lists, reserve) get memory and wait; those of a step do neither.
 * Particles, clusters and batches have 32-bit numbers, entries of lists 64-bit ones.
 */
#ifndef CUDA_TREECODE_DEVICE_H
#define CUDA_TREECODE_DEVICE_H

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
    /* Half the diagonal. */
    __device__ double ball(int cluster, double centre[3]) const
    {
        double square = 0;
        for (int d = 0; d < 3; d++)
        {
            double half;
            box(cluster, d, &centre[d], &half);
            square += half * half;
        }
        return sqrt(square);
    }
    __device__ int count(int cluster) const
    {
        return end[cluster] - begin[cluster];
    }
};

/* A tree, and its memory. */
struct DeviceTree
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
};

struct treecode_device
{
    DeviceLimits      limits;
    AllowedKernels    allowed; /* shared memory */
    int               multiprocessors = 0;
    cudaStream_t      stream          = nullptr;
    DeviceTree        sources, targets; /* targets: separate ones */
    DeviceLists       lists, point_lists, sample;
    const void *      x = nullptr, *y = nullptr;       /* the caller's positions on the device, in an assign */
    DeviceBuffer      x_copy, y_copy;                  /* those of the host */
    DeviceBuffer      copy;                            /* results on their way to the host */
    std::vector<char> host_copy;                       /* arrays of the device on the host */
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

/* Of call.h. */
gmxfmm_status fmm_cuda_failed(treecode* t, cudaError_t error, const char* call, const char* file, int line);

static inline const DeviceTree* treecode_device_targets(const treecode* t)
{
    return t->separate ? &t->device->targets : &t->device->sources;
}

/* device.cu: room for that many bytes, contents lost if it grows, or kept. Errors: MEMORY. */
gmxfmm_status treecode_grow(treecode* t, DeviceBuffer* buffer, size_t bytes);
gmxfmm_status treecode_grow_keep(treecode* t, DeviceBuffer* buffer, size_t bytes);

/* Room, and a copy of the host's, on the stream. Errors: MEMORY, DEVICE. */
gmxfmm_status treecode_upload(treecode* t, DeviceBuffer* buffer, const void* from, size_t bytes);

/* Copies from the device, and waits; large ones of arrays of the caller's by way of pinned memory. Errors: DEVICE. */
gmxfmm_status treecode_download(treecode* t, void* to, const void* from, size_t bytes);

/* *x, an array of either side, becomes its address on the device: its own, or that of a copy in the buffer. Errors:
 * MEMORY, DEVICE. */
gmxfmm_status treecode_on_device(treecode* t, const void** x, DeviceBuffer* copy, size_t bytes);

/* The stages: see fmm/treecode/state.h. tree.cu */
gmxfmm_status treecode_device_extent(treecode* t, double low[3], double high[3]);
gmxfmm_status treecode_device_trees(treecode* t);
gmxfmm_status treecode_device_mirror(treecode* t, int with_particles);

/* gather.cu: x on the device. */
gmxfmm_status treecode_device_gather(treecode* t, const void* x, cudaStream_t stream);

/* lists.cu and dual.cu */
gmxfmm_status treecode_device_lists(treecode* t);
gmxfmm_status treecode_device_dual_lists(treecode* t);
gmxfmm_status treecode_device_upload_lists(treecode* t, DeviceLists* to, const treecode_lists* lists);
/* Room for so many batches; starts that have numbers of entries at [b + 1] become starts, and their totals are read. */
gmxfmm_status treecode_device_begin_lists(treecode* t, DeviceLists* lists, int num);
gmxfmm_status treecode_device_add_starts(treecode* t, DeviceLists* lists, int64_t totals[2]);
/* Leaves of a tree as batches. */
gmxfmm_status treecode_device_leaf_batches(treecode* t, DeviceLists* lists, const DeviceTree* tree);
/* Pairs that lists stand for, and tiles of batches that are there, of so many targets in all. */
gmxfmm_status treecode_device_finish_lists(treecode* t, DeviceLists* lists, int64_t num_targets);

/* charges.cu: of the gathered sources, boxes of parents included. Bytes of shared memory that its kernels need at this
 * degree, at most. */
gmxfmm_status treecode_device_charges(treecode* t, cudaStream_t stream);
size_t        treecode_device_charges_shared(int degree);

/* sums.cu: sums of lists into phi and slope, or those of points into point. */
gmxfmm_status treecode_device_sums(
    treecode* t, const DeviceLists* lists, gmxfmm_precision precision, int with_field, cudaStream_t stream);

/* downward.cu: from point to phi and slope. */
gmxfmm_status treecode_device_downward(treecode* t, int with_field, cudaStream_t stream);
size_t        treecode_device_downward_shared(int degree);

/* output.cu: results in the caller's order and units, at addresses of the device. NULL leaves a thing out. */
struct TreecodeOutput
{
    void *  potential, *field, *force;
    double* energy; /* 2: zero, and all of it */
    int*    status;
};
gmxfmm_status treecode_device_output(treecode* t, const TreecodeOutput& output, cudaStream_t stream);

#endif
