/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each of several devices computes of a step (devices/parts.h, slabs.h, leaf_parts.h). */
#ifndef FMM_CUDA_RANGE_H
#define FMM_CUDA_RANGE_H

#include "cuda/state.h"

enum
{
    c_allTiles     = 1 << 16, /* what shares are parts of */
    c_runs         = 3,       /* of layers whose particles a device needs: two near its tiles, one of its far field */
    c_fillingTiles = 16,      /* of P2P, for a multiprocessor, of 24 that it has room for */
    c_manyTiles    = 72       /* three times that */
};

/* The tiles of a device, and what P2P reads for them; there, since assignments on a stream change it. */
struct TileRange
{
    int num_tiles, first_tile;
    int first[c_runs], end[c_runs]; /* sources, sorted: of runs of layers, from the lowest on */
    int first_target, end_target;
    int first_special, end_special;
};

/* Of `all` tiles those before a share. */
static __host__ __device__ inline int tiles_before(int all, int share)
{
    return static_cast<int>(static_cast<int64_t>(all) * share / c_allTiles);
}

/* Devices of the plan, the first of which is d. */
static inline int num_devices(const fmm_device* d)
{
    return d->group != NULL ? d->group->num : 1;
}

static inline bool has_others(const fmm_device* d)
{
    return num_devices(d) > 1;
}

/* Whether the first device has a part of the near field. */
static inline bool has_own_part(const fmm_device* d)
{
    return !has_others(d) || d->range.end_share > 0;
}

/* Whether a device but the first does anything in a step of these fields. */
static inline bool has_work(const fmm_device* d, bool near, bool far)
{
    return (near && d->range.warps > 0) || (far && d->range.has_slab);
}

/* Whether devices share the far field. */
static inline bool has_slabs(const gmxfmm_plan* plan)
{
    const DeviceGroup* group = plan->device->group;
    return group != NULL && group->slabs && group->slab_arrays == plan->far.arrays;
}

/* Whether devices share M2L of the leaves. */
static inline bool has_leaf_parts(const gmxfmm_plan* plan)
{
    const DeviceGroup* group = plan->device->group;
    return group != NULL && group->leaves && group->leaf_arrays == plan->far.arrays;
}

/* Warps of P2P on a device, and for each multiprocessor of it. */
static inline int warps_of(const gmxfmm_plan* plan, const fmm_device* d)
{
    return has_others(plan->device) ? d->range.warps : targets_of(plan->device)->launched_tiles;
}

static inline int tiles_each(const gmxfmm_plan* plan, const fmm_device* d)
{
    return warps_of(plan, d) / d->limits.processors;
}

/* Whether P2P begins behind the transform of the multipoles, by its tiles for a multiprocessor. Its warps take a
 * multiprocessor's shared memory and stay long: if they fill the device, the transform, for which all of the far field
 * waits, would wait for them. Where there are many more, the device has work enough for both at any time. */
static inline bool follows_transform(const gmxfmm_plan* plan, const fmm_device* d)
{
    const int tiles = tiles_each(plan, d);
    return tiles >= c_fillingTiles && tiles < c_manyTiles;
}

#endif
