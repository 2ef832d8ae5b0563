/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums of dq phi of each parameter. A parameter's list is cut into pieces, one for a warp: some have a few particles,
 * one may have all. */
#include "cuda/charge_gradient.h"

#include <vector>

#include "cuda/device.h"
#include "cuda/runtime/recording.h"
#include "cuda/runtime/sums.h"

enum
{
    c_threads = 128,
    c_piece   = 512 /* derivatives of a piece, at most */
};

struct GradientArgs
{
    int           num, num_pieces;
    const int *   first_piece, *piece_start, *entry;
    const double *dq, *phi;
    double *      partial, *gradient;
    unsigned*     done;
};

static __device__ double warp_sum(double value)
{
    for (int step = 16; step > 0; step /= 2)
    {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    return value;
}

__global__ void __launch_bounds__(c_threads) sum_derivatives(GradientArgs a)
{
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int piece  = static_cast<int>(blockIdx.x) * (c_threads / 32) + warp;
    double*   result = a.num_pieces == a.num ? a.gradient : a.partial; /* a piece each: nothing to add */
    if (piece < a.num_pieces)
    {
        double sum = 0;
        for (int j = a.piece_start[piece] + lane; j < a.piece_start[piece + 1]; j += 32)
        {
            sum += a.dq[j] * a.phi[a.entry[j]];
        }
        sum = warp_sum(sum);
        if (lane == 0)
        {
            result[piece] = sum;
        }
    }
    if (result == a.gradient || !is_last_block(a.done))
    {
        return;
    }
    for (int k = warp; k < a.num; k += c_threads / 32)
    {
        double sum = 0;
        for (int p = a.first_piece[k] + lane; p < a.first_piece[k + 1]; p += 32)
        {
            sum += __ldcg(a.partial + p);
        }
        sum = warp_sum(sum);
        if (lane == 0)
        {
            a.gradient[k] = sum;
        }
    }
    if (threadIdx.x == 0)
    {
        *a.done = 0;
    }
}

template <class T>
static gmxfmm_status upload(gmxfmm_plan* plan, DeviceBuffer* to, const T* from, size_t num)
{
    FMM_TRY(fmm_device_reserve(plan, to, (num + 1) * sizeof(T)));
    return fmm_cuda_upload(plan, to->memory, from, num * sizeof(T));
}

gmxfmm_status fmm_device_set_charge_derivatives(gmxfmm_plan* plan)
{
    const fmm_charge_derivatives* from = &plan->derivatives;
    DeviceDerivatives*            d    = &plan->device->derivatives;
    const size_t                  all  = static_cast<size_t>(from->start[from->num]);
    const size_t                  n    = static_cast<size_t>(plan->particles.n);
    std::vector<int>              first_piece, piece_start;
    DeviceScope                   scope(plan->device->id);
    for (int k = 0; k < from->num; k++)
    {
        first_piece.push_back(static_cast<int>(piece_start.size()));
        int begin = from->start[k];
        do
        {
            piece_start.push_back(begin);
            begin += c_piece;
        } while (begin < from->start[k + 1]);
    }
    FMM_CUDA(plan, fmm_cuda_wait_for_device()); /* steps still running use what is replaced here */
    d->num_pieces = static_cast<int>(piece_start.size());
    first_piece.push_back(d->num_pieces);
    piece_start.push_back(from->start[from->num]);
    FMM_TRY(upload(plan, &d->first_piece, first_piece.data(), first_piece.size()));
    FMM_TRY(upload(plan, &d->piece_start, piece_start.data(), piece_start.size()));
    FMM_TRY(upload(plan, &d->entry, from->entry, all));
    FMM_TRY(upload(plan, &d->dq, from->dq, all));
    FMM_TRY(upload(plan, &d->slot, from->slot, n));
    FMM_TRY(fmm_device_reserve(plan, &d->phi, (all + 1) * sizeof(double)));
    FMM_TRY(fmm_device_reserve(plan, &d->gradient, static_cast<size_t>(from->num) * sizeof(double)));
    return fmm_device_reserve(plan, &d->partial, static_cast<size_t>(d->num_pieces) * sizeof(double));
}

gmxfmm_status fmm_cuda_charge_gradient(gmxfmm_plan* plan, double* gradient, cudaStream_t stream)
{
    const DeviceDerivatives* d = &plan->device->derivatives;
    GradientArgs             a;
    a.num         = plan->derivatives.num;
    a.num_pieces  = d->num_pieces;
    a.first_piece = d->first_piece.as<int>();
    a.piece_start = d->piece_start.as<int>();
    a.entry       = d->entry.as<int>();
    a.dq          = d->dq.as<double>();
    a.phi         = d->phi.as<double>();
    a.partial     = d->partial.as<double>();
    a.gradient    = gradient;
    a.done        = &plan->device->output.results.as<StepResults>()->gradient_done;
    sum_derivatives<<<blocks_for(a.num_pieces, c_threads / 32), c_threads, 0, stream>>>(a);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}
