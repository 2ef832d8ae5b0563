/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums of particles without charge that stand where a charge does, as virtual sites may, in double precision: where
 * those of all pairs are not finite, a block adds up the others. */
#include "cuda/treecode/sums.h"

#include "cuda/runtime/sums.h"
#include "cuda/treecode/device_kernels.h"

namespace
{

enum
{
    c_threads = 128,
    c_values  = 4
};

struct Sites
{
    SumsArguments            all; /* sum: of targets */
    TreecodeBatches          lists[2];
    treecode_kernel          kernel;
    int                      num_lists, values;
    KernelParameters<double> parameters;
};

/* Adds a pair at d, unless it is not finite. */
__device__ __forceinline__ void addPair(const Sites& a, const double* d, double q, double* sum)
{
    double g, slope;
    twice::kernel_evaluate(a.kernel, d[0] * d[0] + d[1] * d[1] + d[2] * d[2], a.parameters, &g, &slope);
    if (isfinite(g) && isfinite(slope))
    {
        sum[0] += q * g;
        for (int c = 0; c < 3; c++)
        {
            sum[1 + c] -= q * slope * d[c];
        }
    }
}

/* This thread's part of the sums of a target of the batch. */
__device__ void addOthers(const Sites& a, const TreecodeBatches& lists, int batch, int target, double* sum)
{
    const TreecodeTree& from = a.all.sources;
    const int           edge = a.all.degree + 1, size = edge * edge * edge;
    const double        x[3] = {a.all.targets.x[0][target], a.all.targets.x[1][target], a.all.targets.x[2][target]};
    double              d[3];
    for (int64_t l = lists.direct_start[batch]; l < lists.direct_start[batch + 1]; l++)
    {
        const int cluster = lists.direct[l];
        for (int s = from.begin[cluster] + static_cast<int>(threadIdx.x); s < from.end[cluster]; s += c_threads)
        {
            for (int c = 0; c < 3; c++)
            {
                d[c] = x[c] - from.x[c][s];
            }
            if (s != target && a.all.q[s] != 0)
            {
                addPair(a, d, a.all.q[s], sum);
            }
        }
    }
    for (int64_t l = lists.approximated_start[batch]; l < lists.approximated_start[batch + 1]; l++)
    {
        const int     cluster = lists.approximated[l];
        const double* charge  = a.all.charge + static_cast<size_t>(cluster) * static_cast<size_t>(size);
        double        centre[3], half[3];
        for (int c = 0; c < 3; c++)
        {
            from.box(cluster, c, &centre[c], &half[c]);
        }
        for (int j = static_cast<int>(threadIdx.x); j < size; j += c_threads)
        {
            const int k[3] = {j / (edge * edge), j / edge % edge, j % edge};
            for (int c = 0; c < 3; c++)
            {
                d[c] = x[c] - (centre[c] + half[c] * a.all.points.s[k[c]]);
            }
            addPair(a, d, charge[j], sum);
        }
    }
}

/* A block for each tile. */
__global__ void __launch_bounds__(c_threads) sumsOfSites(const __grid_constant__ Sites a)
{
    __shared__ bool    missing[c_threads];
    const TreecodeTile tile = a.all.tile[blockIdx.x];
    twice::fillPowers();
    for (int first = 0; first < tile.count; first += c_threads)
    {
        const int me = first + static_cast<int>(threadIdx.x), target = tile.first + me;
        bool      absent = false;
        for (int v = 0; v < a.values && me < tile.count && a.all.q[target] == 0; v++)
        {
            absent = absent || !isfinite(a.all.sum[v][target]);
        }
        missing[threadIdx.x] = absent;
        if (!__syncthreads_or(absent))
        {
            continue;
        }
        for (int i = 0; i < c_threads; i++)
        {
            if (missing[i])
            {
                double sum[c_values] = {0};
                for (int k = 0; k < a.num_lists; k++)
                {
                    addOthers(a, a.lists[k], tile.batch, tile.first + first + i, sum);
                }
                for (int v = 0; v < a.values; v++)
                {
                    const double all = block_sum<c_threads>(sum[v]);
                    if (threadIdx.x == 0)
                    {
                        a.all.sum[v][tile.first + first + i] = all;
                    }
                }
            }
        }
        __syncthreads();
    }
}

} // namespace

gmxfmm_status treecode_sums_of_sites(treecode*            t,
                                     const DeviceLists*   lists,
                                     const DeviceLists*   before,
                                     const SumsArguments& a,
                                     int                  values,
                                     cudaStream_t         stream)
{
    Sites s = {};
    if (before != nullptr && before->num > 0)
    {
        s.lists[s.num_lists++] = before->view();
    }
    s.lists[s.num_lists++] = lists->view();
    s.all                  = a;
    s.kernel               = t->options.kernel;
    s.values               = values;
    for (int i = 0; i < TREECODE_PARAMETERS; i++)
    {
        s.parameters.p[i] = a.parameter[i];
    }
    sumsOfSites<<<static_cast<unsigned>(lists->num_tiles), c_threads, 0, stream>>>(s);
    FMM_CUDA(t, cudaGetLastError());
    return GMXFMM_OK;
}
