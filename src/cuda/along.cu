/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Derivatives along a way, THEORY (52), by two steps on a stream: of the charges, with the gradient of the field, and
 * of charges w and dipoles q u. Results of both are in memory that a synchronous execute would use. */
#include <algorithm>
#include <cstring>

#include "cuda/device.h"
#include "cuda/execute.h"
#include "cuda/output.h"
#include "cuda/particles/particles.h"
#include "cuda/runtime/recording.h"
#include "cuda/runtime/sums.h"
#include "fmm/math/along.h"

enum
{
    c_threads = 256,
    c_words   = 14 /* of a particle's results */
};

/* Arrays of both steps, the first of which has the gradient. */
struct AlongSteps
{
    gmxfmm_device_output charges, way;
};

template <class X>
struct AlongArgs
{
    int           n;
    const double* q;
    const X *     u, *w, *phi, *field, *gradient, *way_phi, *way_field;
    X *           force, *potential, *felt; /* the last, and energy, may be NULL */
    double *      partial, *energy;
    unsigned*     done;
};

template <class X>
__global__ void __launch_bounds__(c_threads) put_together(AlongArgs<X> a)
{
    double energy = 0;
    for (int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x); i < a.n;
         i += static_cast<int>(gridDim.x) * c_threads)
    {
        const size_t     at = 3 * static_cast<size_t>(i);
        fmm_along_fields fields;
        fields.q       = a.q[i];
        fields.w       = static_cast<double>(a.w[i]);
        fields.phi     = static_cast<double>(a.phi[i]);
        fields.way_phi = static_cast<double>(a.way_phi[i]);
        for (int d = 0; d < 3; d++)
        {
            fields.u[d]         = static_cast<double>(a.u[at + d]);
            fields.field[d]     = static_cast<double>(a.field[at + d]);
            fields.apart[d]     = fields.field[d];
            fields.way_field[d] = static_cast<double>(a.way_field[at + d]);
        }
        for (int k = 0; k < 6; k++)
        {
            fields.gradient[k] = static_cast<double>(a.gradient[2 * at + k]);
        }
        const fmm_along_derivatives by = fmm_along_of(&fields);
        for (int d = 0; d < 3; d++)
        {
            a.force[at + d] = static_cast<X>(by.force[d]);
            if (a.felt != NULL)
            {
                a.felt[at + d] = static_cast<X>(fields.q * fields.field[d]);
            }
        }
        a.potential[i] = static_cast<X>(by.potential);
        energy += by.energy;
    }
    if (a.energy == NULL)
    {
        return;
    }
    const double sum = block_sum<c_threads>(energy);
    if (threadIdx.x == 0)
    {
        a.partial[blockIdx.x] = sum;
    }
    if (is_last_block(a.done))
    {
        const double all = column_sum<c_threads>(a.partial, static_cast<int>(gridDim.x), 1);
        if (threadIdx.x == 0)
        {
            *a.energy = all;
            *a.done   = 0;
        }
    }
}

template <class X>
static gmxfmm_status
launch(gmxfmm_plan* plan, const gmxfmm_device_along* along, const AlongSteps& steps, cudaStream_t stream)
{
    const fmm_device* d      = plan->device;
    const int         n      = d->particles.sources.n;
    const int         blocks = std::max(1, std::min<int>(blocks_for(n, c_threads), c_sumBlocks));
    AlongArgs<X>      a;
    a.n         = n;
    a.q         = d->charges.kept.as<double>();
    a.u         = static_cast<const X*>(along->u);
    a.w         = static_cast<const X*>(along->w);
    a.phi       = static_cast<const X*>(steps.charges.potential);
    a.field     = static_cast<const X*>(steps.charges.field);
    a.gradient  = static_cast<const X*>(steps.charges.field_gradient);
    a.way_phi   = static_cast<const X*>(steps.way.potential);
    a.way_field = static_cast<const X*>(steps.way.field);
    a.force     = static_cast<X*>(along->force);
    a.potential = static_cast<X*>(along->potential);
    a.felt      = static_cast<X*>(along->felt);
    a.partial   = d->output.partial.as<double>();
    a.energy    = along->energy;
    a.done      = &d->output.results.as<StepResults>()->output_done;
    put_together<X><<<blocks, c_threads, 0, stream>>>(a);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

/* Whether there is room for dipoles, gradients and results of both steps. */
static bool has_room(const gmxfmm_plan* plan)
{
    const fmm_device*  d   = plan->device;
    const ParticleSet& set = d->particles.sources;
    const size_t       n = static_cast<size_t>(set.n) + 1, tensors = 6 * n * real_size(plan);
    return fmm_cuda_has_way_room(plan) && set.mu.capacity >= 4 * n * real_size(plan) &&
           d->output.near_gradient.capacity >= tensors && d->output.far_gradient.capacity >= tensors &&
           d->output.copy.capacity >= c_words * n * array_word(plan) &&
           (!fmm_is_adaptive(plan) || set.scaled_mu.capacity >= set.scaled.capacity);
}

static gmxfmm_status make_room(gmxfmm_plan* plan, cudaStream_t stream)
{
    bool capturing = false;
    FMM_TRY(fmm_cuda_is_capturing(plan, stream, &capturing));
    if (capturing)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER, "enqueue_along must be called once before it is captured");
    }
    FMM_CUDA(plan, fmm_cuda_wait_for_device());
    FMM_TRY(fmm_cuda_reserve_way(plan));
    FMM_TRY(fmm_cuda_reserve_dipoles(plan));
    FMM_TRY(fmm_is_adaptive(plan) ? fmm_cuda_reserve_scaled(plan) : GMXFMM_OK);
    FMM_CUDA(plan, fmm_cuda_wait_for_device()); /* streams of a step do not wait for the default one */
    return GMXFMM_OK;
}

static AlongSteps steps_of(const gmxfmm_plan* plan, const gmxfmm_device_along* along)
{
    const fmm_device* d   = plan->device;
    const size_t      all = static_cast<size_t>(d->particles.sources.n) * array_word(plan);
    char*             to  = d->output.copy.as<char>();
    AlongSteps        steps;
    std::memset(&steps, 0, sizeof(steps));
    steps.charges.potential      = to;
    steps.charges.field          = to + all;
    steps.charges.field_gradient = to + 4 * all;
    steps.charges.status         = along->status;
    steps.way.potential          = to + 10 * all;
    steps.way.field              = to + 11 * all;
    steps.way.outside            = along->outside;
    return steps;
}

/* The second step, with the charges of the way, and the results. */
static gmxfmm_status along_way(
    gmxfmm_plan* plan, const void* x, const gmxfmm_device_along* along, const AlongSteps& steps, cudaStream_t stream)
{
    FMM_TRY(fmm_cuda_enqueue(plan, x, &steps.way, stream));
    FMM_TRY(along->status != NULL ? fmm_cuda_status(plan, true, along->status, stream) : GMXFMM_OK);
    return plan->options.array_type == GMXFMM_DOUBLE ? launch<double>(plan, along, steps, stream)
                                                     : launch<float>(plan, along, steps, stream);
}

gmxfmm_status fmm_device_enqueue_along(gmxfmm_plan* plan, const void* x, const gmxfmm_device_along* along, void* on)
{
    const cudaStream_t stream = static_cast<cudaStream_t>(on);
    DeviceScope        scope(plan->device->id);
    if (!fmm_device_has_one(plan))
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                        "derivatives along a way are not offered on several GPUs: use one, with num_devices = 0");
    }
    FMM_TRY(has_room(plan) ? GMXFMM_OK : make_room(plan, stream));
    const AlongSteps steps = steps_of(plan, along);
    FMM_TRY(fmm_cuda_begin_way(plan, stream));
    FMM_TRY(fmm_cuda_enqueue(plan, x, &steps.charges, stream));
    FMM_TRY(fmm_cuda_take_way(plan, along->u, along->w, stream));
    const gmxfmm_status status = along_way(plan, x, along, steps, stream);
    const gmxfmm_status back   = fmm_cuda_end_way(plan, stream);
    return status != GMXFMM_OK ? status : back;
}
