/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A part of the near field, and of the far field, on one of several devices (devices/parts.h, slabs.h). */
#ifndef FMM_CUDA_DEVICE_PART_H
#define FMM_CUDA_DEVICE_PART_H

#include "cuda/state.h"

enum
{
    c_allTiles     = 1 << 16, /* what shares are parts of */
    c_runs         = 3,       /* of layers whose particles a part needs: two near its tiles, one of its far field */
    c_fillingTiles = 16,      /* of P2P, for a multiprocessor, of 24 that it has room for */
    c_manyTiles    = 72       /* three times that */
};

/* The tiles of a part, and what P2P reads for them; on its device, since assignments on a stream change it there. */
struct PartRange
{
    int num_tiles, first_tile;
    int first[c_runs], end[c_runs]; /* sources, sorted: of runs of layers, from the lowest on */
    int first_target, end_target;
    int first_special, end_special;
};

/* The part's far field; of the first part, whose arrays are the plan's own, only slab and events. */
struct DeviceSlab
{
    bool         active; /* it has layers or columns */
    Slab         slab;
    int          first_layer, end_layer; /* whose particles it needs, which the first device sends it */
    cudaStream_t stream;
    cudaEvent_t  sent;          /* its planes are transformed, and where their columns are needed */
    cudaEvent_t  spectrum_done; /* the multipoles of its columns are transformed */
    cudaEvent_t  returned;      /* locals of its columns are where their planes are needed */
    cudaEvent_t  far_done;
    cudaEvent_t  gathered; /* the first device has the spectrum of its columns, for a virial */
    DeviceBuffer field, spectrum, local_spectrum, s, twiddles, work_items, background;
};

/* The part's share of an octree's M2L (devices/leaf_parts.h); of the first part only slabs. */
struct SharedLeaves
{
    bool                  active;
    int                   first_slab, end_slab;
    fmm_octree_operators* operators;
    fmm_rotation_kernels* rotation;
    size_t                operator_bytes;
    DeviceBuffer          parent, child, near; /* lists of leaves, of their parents */
    DeviceBuffer          multipole, local;    /* of all leaves */
};

struct DevicePart
{
    int            id;
    cudaStream_t   stream;     /* of the first part: none */
    cudaEvent_t    done;       /* the first device may use the results, and change what they were made of */
    cudaEvent_t    begin, end; /* timing events around its work */
    AllowedKernels allowed;
    int            processors;
    bool           has_chains;
    DeviceSlab     far;
    SharedLeaves   leaves;
    int            begin_share, end_share; /* tiles from this to that part of c_allTiles */
    int            warps;                  /* that P2P is launched with; 0: it has no tiles */
    DeviceBuffer   range;                  /* PartRange */
    DeviceBuffer   cell_start, tiles, special_start, specials, near_vectors, sources, targets, box; /* copies */
};

struct DeviceParts
{
    int         num;
    DevicePart  part[GMXFMM_MAX_DEVICES];
    cudaEvent_t fork;
    double      share[GMXFMM_MAX_DEVICES]; /* their sum is 1 */
    double      far_share[GMXFMM_MAX_DEVICES];
    bool        given, far_given; /* they were asked for */
    bool        connected;   /* each device reaches the memory of all others, so that they can share the far field */
    bool        slabs;       /* they share it */
    int64_t     slab_arrays; /* version of the far field's arrays that they have room for */
    int64_t     no_room;     /* version for which a device has none */
    bool        leaves;      /* they share M2L of an octree's leaves */
    int64_t     leaf_arrays; /* version that they have operators for */
    bool        timed;       /* steps record `begin` and `end` of the parts and the first device */
    bool        loaded;      /* steps are only timed: all of the near field stands for pair kernels of others */
    char        note[640];   /* devices that are not used, and why the far field is not shared */
    /* what the shares were measured for */
    int measured_n, measured_targets, measured_order, measured_near, measured_tiles;
};

/* Of `all` tiles those before a share. */
static __host__ __device__ inline int tiles_before(int all, int share)
{
    return static_cast<int>(static_cast<int64_t>(all) * share / c_allTiles);
}

/* Whether the near field has more than one part, and whether the first device has one. */
static inline bool has_parts(const fmm_device* d)
{
    return d->parts != NULL && d->parts->num > 1;
}

static inline bool has_own_part(const fmm_device* d)
{
    return !has_parts(d) || d->parts->part[0].end_share > 0;
}

/* Whether a part does anything in a step of these fields. */
static inline bool has_work(const DevicePart* part, bool near, bool far)
{
    return (near && part->warps > 0) || (far && part->far.active);
}

/* Whether devices share the far field. */
static inline bool has_slabs(const gmxfmm_plan* plan)
{
    const DeviceParts* parts = plan->device->parts;
    return parts != NULL && parts->slabs && parts->slab_arrays == plan->far.arrays;
}

/* Whether devices share M2L of the leaves. */
static inline bool has_leaf_parts(const gmxfmm_plan* plan)
{
    const DeviceParts* parts = plan->device->parts;
    return parts != NULL && parts->leaves && parts->leaf_arrays == plan->far.arrays;
}

/* Whether P2P begins behind the transform of the multipoles, by its tiles for a multiprocessor. Its warps take a
 * multiprocessor's shared memory and stay long: if they fill the device, the transform, for which all of the far field
 * waits, would wait for them. Where there are many more, the device has work enough for both at any time. */
static inline bool follows_transform(int tiles_each)
{
    return tiles_each >= c_fillingTiles && tiles_each < c_manyTiles;
}

/* Warps of P2P on the first device, and for each multiprocessor of it. */
static inline int own_warps(const fmm_device* d)
{
    return has_parts(d) ? d->parts->part[0].warps : targets_of(d)->launched_tiles;
}

static inline int tiles_each(const fmm_device* d)
{
    return own_warps(d) / d->limits.processors;
}

#endif
