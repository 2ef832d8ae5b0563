/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A part of the near field, on one of several devices (parts.h). */
#ifndef FMM_CUDA_DEVICE_PART_H
#define FMM_CUDA_DEVICE_PART_H

#include "cuda/state.h"

enum
{
    c_allTiles = 1 << 16 /* what shares are parts of */
};

/* The tiles of a part, and what P2P reads for them; on its device, since assignments on a stream change it there. */
struct PartRange
{
    int num_tiles, first_tile;
    int first[2], end[2]; /* sources, sorted: of consecutive layers, which may go on at the other end of the box */
    int first_target, end_target;
    int first_special, end_special;
};

struct DevicePart
{
    int            id;
    cudaStream_t   stream;     /* of the first part: none */
    cudaEvent_t    done;       /* the first device may use the results, and change what they were made of */
    cudaEvent_t    begin, end; /* timing events around its near field */
    AllowedKernels allowed;
    int            processors;
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
    bool        given;                     /* they were asked for */
    bool        timed;                     /* steps record `begin` and `end` of the parts and the first device */
    char        note[160];                 /* devices that are not used */
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

/* Warps of P2P on the first device. */
static inline int own_warps(const fmm_device* d)
{
    return has_parts(d) ? d->parts->part[0].warps : targets_of(d)->launched_tiles;
}

#endif
