/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The extent of particles by a reduction (cub::DeviceReduce::TransformReduce over their numbers). */
#ifndef FMM_CUDA_EXTENT_H
#define FMM_CUDA_EXTENT_H

#include <climits>
#include <cstddef>

#include <cuda_runtime.h>

struct Extent
{
    double low[3], high[3];
    int    bad; /* lowest particle whose position is not finite, or INT_MAX */
};

/* The extent of particle i alone, along the rows of axes. */
template <class X>
struct PointExtent
{
    const X*          x;
    double            axes[9];
    __device__ Extent operator()(int i) const
    {
        Extent   e;
        const X* at = x + 3 * static_cast<size_t>(i);
        e.bad       = INT_MAX;
        for (int d = 0; d < 3; d++)
        {
            const double xi = axes[3 * d] * static_cast<double>(at[0]) + axes[3 * d + 1] * static_cast<double>(at[1]) +
                              axes[3 * d + 2] * static_cast<double>(at[2]);
            e.low[d] = e.high[d] = xi;
            e.bad                = isfinite(xi) ? e.bad : i;
        }
        return e;
    }
};

struct BothExtents
{
    __device__ Extent operator()(const Extent& a, const Extent& b) const
    {
        Extent e;
        for (int d = 0; d < 3; d++)
        {
            e.low[d]  = fmin(a.low[d], b.low[d]);
            e.high[d] = fmax(a.high[d], b.high[d]);
        }
        e.bad = min(a.bad, b.bad);
        return e;
    }
};

#endif
