/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Charges on the device: set with the host's or on a stream, in the order of the sources, and their sum. */
#include <algorithm>

#include "cuda/device.h"
#include "cuda/particles/particles.h"
#include "cuda/runtime/sums.h"

enum
{
    c_threads = 256,
    c_few     = 512 /* charges that are set by the kernel that adds up all: each block looks at them */
};

/* Charges of particles index[count], or of all n without index: q[count], on the device. */
template <class X>
struct ChargeArgs
{
    int            count;
    const int*     index;
    const X*       q;
    int            n;
    const int*     position; /* NULL: sources are not sorted */
    double*        charge;
    Anchor*        anchor;
    ChargeResults* results;
};

/* In the caller's order and, if the sources are sorted, in their anchors. */
template <class X>
static __device__ void set_charge(const ChargeArgs<X>& a, int i, X q)
{
    const double value = static_cast<double>(q);
    a.charge[i]        = value;
    if (a.position != NULL)
    {
        a.anchor[a.position[i]].charge = value;
    }
}

/* An index that no particle has is an error of later steps. */
template <class X>
__global__ void __launch_bounds__(c_threads) set_charges(ChargeArgs<X> a)
{
    const int k = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    const int i = k < a.count && a.index != NULL ? a.index[k] : k;
    if (k < a.count && i >= 0 && i < a.n)
    {
        set_charge(a, i, a.q[k]);
    }
    else if (k < a.count)
    {
        atomicMax(&a.results->stray, k + 1);
    }
}

/* The total charge, with the same bits however the charges were set, and the first particle whose charge is not finite.
 * Each block has `each` particles in a row, of which it first sets those that are among the count. */
template <class X>
__global__ void __launch_bounds__(c_threads) sum_charges(ChargeArgs<X> a, int each)
{
    __shared__ int bad;
    ChargeResults* r     = a.results;
    const int      begin = static_cast<int>(blockIdx.x) * each, end = min(begin + each, a.n);
    double         sum   = 0;
    int            first = c_none;
    for (int k = static_cast<int>(threadIdx.x); k < a.count; k += c_threads)
    {
        const int i = a.index[k];
        if (i >= begin && i < end)
        {
            set_charge(a, i, a.q[k]);
        }
        else if (blockIdx.x == 0 && (i < 0 || i >= a.n))
        {
            atomicMax(&r->stray, k + 1);
        }
    }
    if (threadIdx.x == 0)
    {
        bad = c_none;
    }
    __syncthreads();
    for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += c_threads)
    {
        const double q = a.charge[i];
        sum += q;
        first = isfinite(q) ? first : min(first, i);
    }
    const double total = block_sum<c_threads>(sum);
    atomicMin(&bad, first);
    __syncthreads();
    if (threadIdx.x == 0)
    {
        r->partial[blockIdx.x]     = total;
        r->partial_bad[blockIdx.x] = bad;
    }
    if (is_last_block(&r->done))
    {
        const double all = column_sum<c_threads>(r->partial, static_cast<int>(gridDim.x), 1);
        for (int block = static_cast<int>(threadIdx.x); block < static_cast<int>(gridDim.x); block += c_threads)
        {
            atomicMin(&bad, __ldcg(&r->partial_bad[block]));
        }
        __syncthreads();
        if (threadIdx.x == 0)
        {
            const int stray = __ldcg(&r->stray); /* another block may have found it */
            r->total[0]     = all;
            r->bad          = stray > 0 ? -stray : bad;
            r->stray        = 0;
            r->done         = 0;
        }
    }
}

template <class X>
static gmxfmm_status
launch(gmxfmm_plan* plan, int count, const int* index, const X* q, bool sorted, cudaStream_t stream)
{
    fmm_device*   d = plan->device;
    const int     n = d->sources.n, blocks = std::max(1, std::min<int>(blocks_for(n, c_threads), c_sumBlocks));
    ChargeArgs<X> a = {count,
                       index,
                       q,
                       n,
                       sorted ? d->sources.position.as<int>() : NULL,
                       d->charge.as<double>(),
                       d->sources.anchor.as<Anchor>(),
                       d->charge_results.as<ChargeResults>()};
    if (count > 0 && (index == NULL || count > c_few))
    {
        set_charges<<<blocks_for(count, c_threads), c_threads, 0, stream>>>(a);
        FMM_CUDA(plan, cudaGetLastError());
        a.count = 0;
    }
    sum_charges<<<blocks, c_threads, 0, stream>>>(a, blocks_for(n, blocks));
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_set_charges(gmxfmm_plan* plan)
{
    fmm_device*  d = plan->device;
    const size_t n = static_cast<size_t>(plan->particles.n);
    DeviceScope  scope(d->id);
    FMM_CUDA(plan, cudaDeviceSynchronize()); /* an enqueued step may still be reading the old charges */
    if (d->sources.n != plan->particles.n || !d->has_room)
    {
        FMM_TRY(fmm_cuda_reserve_sources(plan));
    }
    FMM_TRY(fmm_device_reserve(plan, &d->charge, n * sizeof(double)));
    FMM_TRY(fmm_cuda_upload(plan, d->charge.memory, plan->charges.q, n * sizeof(double)));
    /* in place; copies the charges from the caller's order to the anchors */
    FMM_TRY(launch(plan, fmm_is_assigned(plan) ? d->sources.n : 0, NULL, d->charge.as<double>(), true, d->own));
    FMM_CUDA(plan, cudaStreamSynchronize(d->own));
    return GMXFMM_OK;
}

gmxfmm_status
fmm_device_enqueue_charges(gmxfmm_plan* plan, int64_t count, const int* index, const void* q, void* stream)
{
    const int          num    = static_cast<int>(count);
    const bool         sorted = fmm_is_assigned(plan);
    const cudaStream_t on     = static_cast<cudaStream_t>(stream);
    DeviceScope        scope(plan->device->id);
    return plan->options.array_type == GMXFMM_DOUBLE
               ? launch(plan, num, index, static_cast<const double*>(q), sorted, on)
               : launch(plan, num, index, static_cast<const float*>(q), sorted, on);
}
