/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How sums are divided among blocks: a tile of targets of one batch each, two a thread, in multiples of what a warp has
 * where a batch has more than one; and where there are few tiles, lists are divided into parts, too.
 */
#ifndef CUDA_TREECODE_TILES_H
#define CUDA_TREECODE_TILES_H

#include <stddef.h>
#include <stdint.h>

#include "fmm/math/host_device.h"

enum
{
    c_tileTargets = 2,                  /* of a thread */
    c_warpTargets = 32 * c_tileTargets, /* of a warp */
    c_mostThreads = 128,
    c_mostParts   = 16,
    c_tilesInTurns =
        24 /* tiles of 128 threads that a multiprocessor should have, so that the last ones do not matter */
};

static inline size_t treecode_cube(int degree)
{
    const size_t edge = (size_t)degree + 1;
    return edge * edge * edge;
}

/* Threads of a block for batches of so many targets in all: of the larger ones, those that leave fewest warps of a
 * batch of mean size without targets. */
static inline int treecode_tile_threads(int64_t num_targets, int num_batches)
{
    const int64_t mean = num_targets / num_batches, warps = (mean + c_warpTargets - 1) / c_warpTargets;
    int64_t       best = c_mostThreads / 32, idle = (warps + best - 1) / best * best - warps;
    for (int64_t of = best - 1; of > 0; of--)
    {
        const int64_t now = (warps + of - 1) / of * of - warps;
        if (now + warps / 16 < idle && (of > 2 || warps <= 2)) /* blocks of few warps load the same more often */
        {
            best = of;
            idle = now;
        }
    }
    return (int)(32 * best);
}

static inline FMM_HD int treecode_num_tiles(int count, int threads)
{
    const int most = threads * c_tileTargets;
    return (count + most - 1) / most;
}

/* Where tile k of a batch begins: warps are divided evenly. */
static inline FMM_HD int treecode_tile_begin(int count, int tiles, int k)
{
    const int warps = (count + c_warpTargets - 1) / c_warpTargets, begin = (int)((int64_t)warps * k / tiles);
    return begin * c_warpTargets < count ? begin * c_warpTargets : count;
}

static inline int treecode_num_parts(int num_tiles, int threads, int multiprocessors)
{
    const int64_t wanted = (int64_t)c_tilesInTurns * multiprocessors * c_mostThreads / threads;
    const int64_t parts  = num_tiles > 0 ? (wanted + num_tiles - 1) / num_tiles : 1;
    return (int)(parts < 1 ? 1 : parts > (int64_t)c_mostParts ? (int64_t)c_mostParts : parts);
}

#endif
