/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Results in the caller's order, units and type; the energy, added up in a fixed order. */
#include "cuda/treecode/stages.h"

#include "cuda/runtime/sums.h"

namespace
{

enum
{
    c_threads = 256
};

struct Scales
{
    double value, gradient;
};

template <class X>
__global__ void __launch_bounds__(c_threads) writeResults(TreecodeTree     tree,
                                                          const double*    phi,
                                                          const double*    slope0,
                                                          const double*    slope1,
                                                          const double*    slope2,
                                                          const double*    sortedQ,
                                                          Scales           scales,
                                                          X*               potential,
                                                          X*               field,
                                                          X*               force,
                                                          TreecodeResults* results)
{
    const int s = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (s >= tree.n)
    {
        return;
    }
    const size_t i   = (size_t)tree.order[s];
    int          bad = !isfinite(phi[s]);
    if (potential != nullptr)
    {
        potential[i] = (X)(phi[s] * scales.value);
    }
    if (field != nullptr || force != nullptr)
    {
        const double* const slope[3] = {slope0, slope1, slope2};
#pragma unroll
        for (int d = 0; d < 3; d++)
        {
            const double one = slope[d][s] * scales.gradient;
            bad += !isfinite(one);
            if (field != nullptr)
            {
                field[3 * i + d] = (X)one;
            }
            if (force != nullptr)
            {
                force[3 * i + d] = (X)(one * sortedQ[s]);
            }
        }
    }
    if (bad > 0)
    {
        atomicAdd(&results->bad_results, (unsigned long long)bad);
        atomicMax(&results->bad_target, (unsigned long long)s + 1);
    }
}

__global__ void __launch_bounds__(c_threads) blockEnergies(int n, const double* phi, const double* q, double* energy)
{
    double sum = 0;
    for (int s = (int)(blockIdx.x * c_threads + threadIdx.x); s < n; s += c_energyBlocks * c_threads)
    {
        sum += q[s] * phi[s];
    }
    sum = block_sum<c_threads>(sum);
    if (threadIdx.x == 0)
    {
        energy[blockIdx.x] = sum;
    }
}

__global__ void __launch_bounds__(c_energyBlocks)
    writeTotals(const double* energy, double scale, TreecodeResults* results, double* out, int* status)
{
    const double sum = block_sum<c_energyBlocks>(energy != nullptr ? energy[threadIdx.x] : 0) * scale;
    if (threadIdx.x > 0)
    {
        return;
    }
    results->energy = sum;
    if (out != nullptr)
    {
        out[0] = 0;
        out[1] = sum;
    }
    if (status != nullptr)
    {
        *status = results->bad_positions > 0 ? GMXFMM_ERROR_POSITION
                  : results->bad_results > 0 ? GMXFMM_ERROR_COINCIDENT
                                             : GMXFMM_OK;
    }
}

template <class X>
gmxfmm_status write(treecode* t, const TreecodeOutput& o, cudaStream_t stream)
{
    treecode_device*   d      = t->device;
    const TreecodeTree tree   = treecode_device_targets(t)->view();
    const Scales       scales = {treecode_value_factor(t, 0), treecode_value_factor(t, 1)};
    writeResults<X><<<treecode_blocks(tree.n, c_threads), c_threads, 0, stream>>>(
        tree, d->phi.as<double>(), d->slope[0].as<double>(), d->slope[1].as<double>(), d->slope[2].as<double>(),
        d->sorted_q.as<double>(), scales, static_cast<X*>(o.potential), static_cast<X*>(o.field),
        static_cast<X*>(o.force), d->results.as<TreecodeResults>());
    FMM_CUDA(t, cudaGetLastError());
    return GMXFMM_OK;
}

} // namespace

gmxfmm_status treecode_device_output(treecode* t, const TreecodeOutput& o, cudaStream_t stream)
{
    treecode_device* d = t->device;
    FMM_TRY(t->options.floats ? write<float>(t, o, stream) : write<double>(t, o, stream));
    if (!t->separate)
    {
        blockEnergies<<<c_energyBlocks, c_threads, 0, stream>>>((int)t->n, d->phi.as<double>(),
                                                                d->sorted_q.as<double>(), d->energies.as<double>());
        FMM_CUDA(t, cudaGetLastError());
    }
    writeTotals<<<1, c_energyBlocks, 0, stream>>>(t->separate ? nullptr : d->energies.as<double>(),
                                                  0.5 * treecode_value_factor(t, 0), d->results.as<TreecodeResults>(),
                                                  o.energy, o.status);
    FMM_CUDA(t, cudaGetLastError());
    return GMXFMM_OK;
}
