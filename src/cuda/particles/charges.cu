/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Charges on the device: set with the host's or on a stream, in the order of the sources, and their sum. */
#include <algorithm>

#include "cuda/device.h"
#include "cuda/particles/particles.h"
#include "cuda/runtime/recording.h"
#include "cuda/runtime/sums.h"

enum
{
    c_threads = 256
};

/* Sets the charges of particles index[count], or of all n without index, to q[count], on the device: in the caller's
 * order and, if the sources are sorted, in their anchors. An index that no particle has is an error of later steps. */
template <class X>
__global__ void __launch_bounds__(c_threads) set_charges(int            count,
                                                         const int*     index,
                                                         const X*       q,
                                                         int            n,
                                                         const int*     position,
                                                         double*        charge,
                                                         Anchor*        anchor,
                                                         ChargeResults* r)
{
    const int k = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    const int i = k < count && index != NULL ? index[k] : k;
    if (k < count && i >= 0 && i < n)
    {
        const double value = static_cast<double>(q[k]);
        charge[i]          = value;
        if (position != NULL)
        {
            anchor[position[i]].charge = value;
        }
    }
    else if (k < count)
    {
        atomicMax(&r->stray, k + 1);
    }
}

/* Charges w and dipoles q u, the derivative of charges q along a way, in place of these, which are kept. */
template <class X>
__global__ void __launch_bounds__(c_threads) take_way(
    int n, const X* u, const X* w, const int* position, double* charge, double* kept, double* dipole, Anchor* anchor)
{
    const int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (i >= n)
    {
        return;
    }
    const double q = charge[i], value = static_cast<double>(w[i]);
    for (int64_t k = 3 * static_cast<int64_t>(i); k < 3 * static_cast<int64_t>(i) + 3; k++)
    {
        dipole[k] = q * static_cast<double>(u[k]);
    }
    kept[i]                    = q;
    charge[i]                  = value;
    anchor[position[i]].charge = value;
}

/* Whether a charge and its dipole, if there are dipoles, are finite. */
static __device__ inline bool is_finite(double q, const double* dipoles, int i)
{
    const double* mu = dipoles + 3 * static_cast<int64_t>(i);
    return isfinite(q) && (dipoles == NULL || (isfinite(mu[0]) && isfinite(mu[1]) && isfinite(mu[2])));
}

/* The total charge, with the same bits however the charges were set, and the first particle whose charge is not finite,
 * or its dipole: NULL, or those that came with the charges. */
__global__ void __launch_bounds__(c_threads)
    sum_charges(int n, const double* charge, const double* dipoles, ChargeResults* r)
{
    __shared__ int bad;
    double         sum   = 0;
    int            first = c_none;
    if (threadIdx.x == 0)
    {
        bad = c_none;
    }
    for (int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x); i < n;
         i += static_cast<int>(gridDim.x) * c_threads)
    {
        const double q = charge[i];
        sum += q;
        first = is_finite(q, dipoles, i) ? first : min(first, i);
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
            r->total[0] = all;
            r->bad      = r->stray > 0 ? -r->stray : bad;
            r->stray    = 0;
            r->done     = 0;
        }
    }
}

static gmxfmm_status launch_sum(gmxfmm_plan* plan, const double* dipoles, cudaStream_t stream)
{
    const fmm_device* d      = plan->device;
    const int         n      = d->particles.sources.n;
    const int         blocks = std::max(1, std::min<int>(blocks_for(n, c_threads), c_sumBlocks));
    sum_charges<<<blocks, c_threads, 0, stream>>>(n, d->charges.value.as<double>(), dipoles,
                                                  d->charges.results.as<ChargeResults>());
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

template <class X>
static gmxfmm_status
launch(gmxfmm_plan* plan, int count, const int* index, const X* q, bool sorted, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    const int   n = d->particles.sources.n;
    if (count > 0)
    {
        set_charges<X><<<blocks_for(count, c_threads), c_threads, 0, stream>>>(
            count, index, q, n, sorted ? d->particles.sources.position.as<int>() : NULL, d->charges.value.as<double>(),
            d->particles.sources.anchor.as<Anchor>(), d->charges.results.as<ChargeResults>());
        FMM_CUDA(plan, cudaGetLastError());
    }
    return launch_sum(plan, NULL, stream);
}

template <class X>
static gmxfmm_status launch_way(gmxfmm_plan* plan, const void* u, const void* w, cudaStream_t stream)
{
    const fmm_device*  d   = plan->device;
    const ParticleSet& set = d->particles.sources;
    if (set.n > 0)
    {
        take_way<<<blocks_for(set.n, c_threads), c_threads, 0, stream>>>(
            set.n, static_cast<const X*>(u), static_cast<const X*>(w), set.position.as<int>(),
            d->charges.value.as<double>(), d->charges.kept.as<double>(), d->charges.dipoles.as<double>(),
            set.anchor.as<Anchor>());
        FMM_CUDA(plan, cudaGetLastError());
    }
    return launch_sum(plan, d->charges.dipoles.as<double>(), stream);
}

gmxfmm_status fmm_cuda_create_charges(gmxfmm_plan* plan)
{
    DeviceBuffer* results = &plan->device->charges.results;
    FMM_TRY(fmm_device_reserve(plan, results, sizeof(ChargeResults)));
    FMM_CUDA(plan, cudaMemset(results->memory, 0, sizeof(ChargeResults)));
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_set_charges(gmxfmm_plan* plan)
{
    fmm_device*  d = plan->device;
    const size_t n = static_cast<size_t>(plan->particles.n);
    DeviceScope  scope(d->id);
    FMM_CUDA(plan, fmm_cuda_wait_for_device()); /* an enqueued step may still be reading the old charges */
    FMM_TRY(fmm_cuda_reserve_sources(plan));
    FMM_TRY(fmm_device_reserve(plan, &d->charges.value, n * sizeof(double)));
    FMM_TRY(fmm_cuda_upload(plan, d->charges.value.memory, plan->charges.q, n * sizeof(double)));
    /* in place; copies the charges from the caller's order to the anchors */
    FMM_TRY(launch(plan, fmm_is_assigned(plan) ? d->particles.sources.n : 0, NULL, d->charges.value.as<double>(), true,
                   d->schedule.own));
    FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.own));
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_set_dipoles(gmxfmm_plan* plan)
{
    fmm_device*  d = plan->device;
    const size_t n = static_cast<size_t>(plan->particles.n);
    DeviceScope  scope(d->id);
    FMM_CUDA(plan, fmm_cuda_wait_for_device());
    if (!fmm_has_dipoles(plan))
    {
        fmm_device_release(plan, &d->charges.dipoles);
        fmm_cuda_release_dipoles(plan);
        return GMXFMM_OK;
    }
    if (d->group->num > 1)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                        "dipoles are not offered on several GPUs: use one, with num_devices = 0");
    }
    FMM_TRY(fmm_device_reserve(plan, &d->charges.dipoles, 3 * n * sizeof(double)));
    return fmm_cuda_reserve_dipoles(plan);
}

gmxfmm_status fmm_device_take_dipoles(gmxfmm_plan* plan)
{
    const size_t bytes = 3 * static_cast<size_t>(plan->particles.n) * sizeof(double);
    DeviceScope  scope(plan->device->id);
    FMM_CUDA(plan, fmm_cuda_wait_for_device()); /* an enqueued step may still be reading the old ones */
    return fmm_cuda_upload(plan, plan->device->charges.dipoles.memory, plan->charges.mu, bytes);
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

bool fmm_cuda_has_way_room(const gmxfmm_plan* plan)
{
    const DeviceCharges& c = plan->device->charges;
    const size_t         n = static_cast<size_t>(plan->particles.n) * sizeof(double);
    return c.kept.capacity >= n && c.dipoles.capacity >= 3 * n;
}

gmxfmm_status fmm_cuda_reserve_way(gmxfmm_plan* plan)
{
    DeviceCharges* c = &plan->device->charges;
    const size_t   n = static_cast<size_t>(plan->particles.n) * sizeof(double);
    FMM_TRY(fmm_device_reserve(plan, &c->dipoles, 3 * n));
    return fmm_device_reserve(plan, &c->kept, n);
}

gmxfmm_status fmm_cuda_begin_way(gmxfmm_plan* plan, cudaStream_t stream)
{
    const size_t bytes = 3 * static_cast<size_t>(plan->particles.n) * sizeof(double);
    FMM_CUDA(plan, bytes > 0 ? cudaMemsetAsync(plan->device->charges.dipoles.memory, 0, bytes, stream) : cudaSuccess);
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_take_way(gmxfmm_plan* plan, const void* u, const void* w, cudaStream_t stream)
{
    return plan->options.array_type == GMXFMM_DOUBLE ? launch_way<double>(plan, u, w, stream)
                                                     : launch_way<float>(plan, u, w, stream);
}

gmxfmm_status fmm_cuda_end_way(gmxfmm_plan* plan, cudaStream_t stream)
{
    return launch(plan, plan->device->particles.sources.n, NULL, plan->device->charges.kept.as<double>(), true, stream);
}
