/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The range of a step that a device computes (DeviceRange): what it has of each stage. */
#ifndef FMM_CUDA_RANGE_H
#define FMM_CUDA_RANGE_H

#include "cuda/state.h"

enum
{
    c_allTiles     = 1 << 16, /* what shares are parts of */
    c_octants      = 8,       /* of leaves, by which child of their parents they are */
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

static inline bool has_layers(const fmm_device* d)
{
    return d->range.grid.end_layer > d->range.grid.first_layer;
}

static inline bool has_columns(const fmm_device* d)
{
    return d->range.grid.end_column > d->range.grid.first_column;
}

/* Whether device k has stages of the convolution. The first has to wait for the others in any case. */
static inline bool convolves(const gmxfmm_plan* plan, int k)
{
    return k == 0 || has_layers(&plan->device[k]) || has_columns(&plan->device[k]);
}

/* Whether another device than the first does anything in a step of these fields. */
static inline bool has_work(const fmm_device* d, bool near, bool far)
{
    return (near && d->range.warps > 0) || (far && (has_layers(d) || has_columns(d)));
}

/* Whether devices share the far field, or M2L of an octree's leaves. */
static inline bool shares_far(const gmxfmm_plan* plan)
{
    return plan->device->group->shares_far;
}

static inline bool shares_cells(const gmxfmm_plan* plan)
{
    return shares_far(plan) && plan->domain.tree == NULL;
}

/* Warps of P2P on a device for each multiprocessor of it. */
static inline int tiles_each(const fmm_device* d)
{
    return d->range.warps / d->limits.processors;
}

/* Whether P2P begins behind the transform of the multipoles, by its tiles for a multiprocessor. Its warps take a
 * multiprocessor's shared memory and stay long: if they fill the device, the transform, for which all of the far field
 * waits, would wait for them. Where there are many more, the device has work enough for both at any time. */
static inline bool follows_transform(const fmm_device* d)
{
    const int tiles = tiles_each(d);
    return tiles >= c_fillingTiles && tiles < c_manyTiles;
}

#endif
