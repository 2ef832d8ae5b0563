/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sources into the tree's order, and the boxes of leaves around them: a warp a leaf. Boxes of parents: charges.cu. */
#include "cuda/treecode/stages.h"

namespace
{

enum
{
    c_threads = 128
};

template <class X>
__global__ void __launch_bounds__(c_threads) gatherLeaves(TreecodeTree     tree,
                                                          int              num_leaves,
                                                          const X*         x,
                                                          const double*    q,
                                                          double           oneOver,
                                                          double*          sortedQ,
                                                          TreecodeResults* results)
{
    const int which = (int)((blockIdx.x * c_threads + threadIdx.x) / 32), lane = (int)(threadIdx.x % 32);
    if (which >= num_leaves)
    {
        return;
    }
    const int leaf = tree.leaf[which], end = tree.end[leaf];
    double    low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    int       bad = 0;
#pragma unroll 4
    for (int s = tree.begin[leaf] + lane; s < end; s += 32)
    {
        const int i = tree.order[s];
        for (int d = 0; d < 3; d++)
        {
            const double y = (double)x[3 * (size_t)i + d] * oneOver;
            bad += !isfinite(y);
            tree.x[d][s] = y;
            low[d]       = fmin(low[d], y);
            high[d]      = fmax(high[d], y);
        }
        sortedQ[s] = q[i];
    }
    for (int d = 0; d < 3; d++)
    {
        for (int step = 16; step > 0; step /= 2)
        {
            low[d]  = fmin(low[d], __shfl_xor_sync(0xffffffffU, low[d], step));
            high[d] = fmax(high[d], __shfl_xor_sync(0xffffffffU, high[d], step));
        }
        if (lane == 0)
        {
            tree.low[3 * (size_t)leaf + d]  = low[d];
            tree.high[3 * (size_t)leaf + d] = high[d];
        }
    }
    if (bad > 0)
    {
        atomicAdd(&results->bad_positions, (unsigned long long)bad);
    }
}

} // namespace

gmxfmm_status treecode_device_gather(treecode* t, const void* x, cudaStream_t stream)
{
    treecode_device*       d       = t->device;
    const DeviceClusters*  tree    = &d->sources;
    const unsigned         blocks  = treecode_blocks(32LL * tree->num_leaves, c_threads);
    TreecodeResults* const results = d->results.as<TreecodeResults>();
    FMM_CUDA(t, cudaMemsetAsync(results, 0, sizeof(TreecodeResults), stream));
    if (t->options.floats)
    {
        gatherLeaves<<<blocks, c_threads, 0, stream>>>(tree->view(), tree->num_leaves, static_cast<const float*>(x),
                                                       d->q.as<double>(), 1 / t->unit, d->sorted_q.as<double>(),
                                                       results);
    }
    else
    {
        gatherLeaves<<<blocks, c_threads, 0, stream>>>(tree->view(), tree->num_leaves, static_cast<const double*>(x),
                                                       d->q.as<double>(), 1 / t->unit, d->sorted_q.as<double>(),
                                                       results);
    }
    FMM_CUDA(t, cudaGetLastError());
    return GMXFMM_OK;
}
