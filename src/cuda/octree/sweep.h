/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One launch for a sweep of M2M or L2L through levels whose cells are in one array: a launch for each level takes
 * longer than what it computes where levels are many and small. A step of the sweep is a level, divided into parts,
 * which blocks take in order. A block waits until all parts of the step before have ended: these were taken before its
 * own, by blocks that run or have ended, so that it waits for none that cannot run.
 */
#ifndef FMM_CUDA_OCTREE_SWEEP_H
#define FMM_CUDA_OCTREE_SWEEP_H

#include "cuda/octree/state.h"

/* The parents of a level: begin[c] + i of child index c for i < before[c + 1] - before[c]. A part is a tile of at most
 * `lanes` parents, and one of the `splits` in which their coefficients are divided. */
struct SweepStep
{
    int begin[8], before[9];
    int lanes, splits;
    int first, end; /* parts, counted through all steps */
};

/* Counters on the device, zero between kernels: parts that were taken, and that have ended. */
enum
{
    c_sweepTaken,
    c_sweepEnded,
    c_sweepCounters,
    c_sweepBytes = c_sweepCounters * sizeof(unsigned)
};

struct Sweep
{
    int       num; /* steps */
    unsigned* counter;
    SweepStep step[FMM_MAX_LEVEL];
};
static_assert(sizeof(Sweep) <= 3072, "kernels have 4 KB of parameters, and have others");

struct SweepPart
{
    int step, tile, split;
};

static inline int num_parents(const fmm_octree_parents* parents, int level)
{
    int num = 0;
    for (int c = 0; c < 8; c++)
    {
        num += parents->end[level][c] - parents->begin[level][c];
    }
    return num;
}

static inline Sweep make_sweep(const fmm_octree_operators* ops)
{
    Sweep sweep   = {};
    sweep.counter = ops->sweep.as<unsigned>();
    return sweep;
}

static inline int num_parts(const Sweep& sweep)
{
    return sweep.num > 0 ? sweep.step[sweep.num - 1].end : 0;
}

static inline void
add_step(Sweep* sweep, const fmm_octree_parents* parents, int level, int lanes, int tiles, int splits)
{
    const int  first = num_parts(*sweep);
    SweepStep* step  = &sweep->step[sweep->num++];
    for (int c = 0; c < 8; c++)
    {
        step->begin[c]      = parents->begin[level][c];
        step->before[c + 1] = step->before[c] + parents->end[level][c] - parents->begin[level][c];
    }
    step->lanes  = lanes;
    step->splits = splits;
    step->first  = first;
    step->end    = first + tiles * splits;
}

/* Parent i of a level, or `none` if it has not so many. */
static __device__ __forceinline__ int parent_of(const SweepStep& step, int i, int none)
{
    int parent = none;
#pragma unroll
    for (int c = 0; c < 8; c++)
    {
        parent = i >= step.before[c] && i < step.before[c + 1] ? step.begin[c] + i - step.before[c] : parent;
    }
    return parent;
}

/* The part that a block takes, when it can begin. All threads call. */
static __device__ __forceinline__ SweepPart begin_part(const Sweep& sweep)
{
    __shared__ int taken;
    if (threadIdx.x == 0)
    {
        taken = static_cast<int>(atomicAdd(sweep.counter + c_sweepTaken, 1u));
    }
    __syncthreads();
    SweepPart part = {0, 0, 0};
    while (taken >= sweep.step[part.step].end)
    {
        part.step++;
    }
    const SweepStep& step = sweep.step[part.step];
    if (threadIdx.x == 0)
    {
        const volatile unsigned* ended = sweep.counter + c_sweepEnded;
        while (*ended < static_cast<unsigned>(step.first))
        {
        }
        __threadfence();
    }
    __syncthreads();
    part.tile  = (taken - step.first) / step.splits;
    part.split = (taken - step.first) % step.splits;
    return part;
}

/* Tells that a part has ended. The last one of all sets the counters to zero: nobody waits for them any more. */
static __device__ __forceinline__ void end_part(const Sweep& sweep)
{
    __syncthreads();
    if (threadIdx.x == 0)
    {
        __threadfence();
        if (atomicAdd(sweep.counter + c_sweepEnded, 1u) == gridDim.x - 1)
        {
            sweep.counter[c_sweepTaken] = sweep.counter[c_sweepEnded] = 0;
        }
    }
}

#endif
