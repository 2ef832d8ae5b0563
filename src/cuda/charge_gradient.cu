/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums of dq phi of each parameter. A parameter's list is cut into pieces, one for a warp: some have a few particles,
 * one may have all. */
#include "cuda/charge_gradient.h"

#include <algorithm>
#include <vector>

#include "cuda/device.h"
#include "cuda/particles/particles.h"
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

__global__ void __launch_bounds__(c_threads)
    mark_tiles(const Tile* tiles, const int* num_tiles, const int* sorted, const int* slot, bool* kept)
{
    const int me = static_cast<int>(blockIdx.x) * c_threads + static_cast<int>(threadIdx.x);
    if (me >= *num_tiles)
    {
        return;
    }
    bool any = false;
    for (int s = tiles[me].x; s < tiles[me].x + tiles[me].y; s++)
    {
        any = any || slot[sorted[s]] >= 0;
    }
    kept[me] = any;
}

gmxfmm_status fmm_cuda_reserve_kept_tiles(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    return plan->derivatives.num > 0 ? fmm_device_reserve(plan, &d->derivatives.kept,
                                                          static_cast<size_t>(fmm_cuda_most_tiles(plan, &d->sources)))
                                     : GMXFMM_OK;
}

gmxfmm_status fmm_cuda_mark_kept_tiles(gmxfmm_plan* plan, cudaStream_t stream)
{
    const fmm_device* d = plan->device;
    const int         most =
        plan->derivatives.num > 0 && plan->particles.num_targets == 0 ? fmm_cuda_most_tiles(plan, &d->sources) : 0;
    if (most > 0)
    {
        mark_tiles<<<blocks_for(most, c_threads), c_threads, 0, stream>>>(
            d->sources.tiles.as<Tile>(), &d->assign_results.as<AssignResults>()->num_tiles, d->sources.sorted.as<int>(),
            d->derivatives.slot.as<int>(), d->derivatives.kept.as<bool>());
        FMM_CUDA(plan, cudaGetLastError());
    }
    return GMXFMM_OK;
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
    FMM_TRY(fmm_device_reserve(plan, &d->partial, static_cast<size_t>(d->num_pieces) * sizeof(double)));
    if (!fmm_is_assigned(plan))
    {
        return GMXFMM_OK;
    }
    FMM_CUDA(plan, cudaDeviceSynchronize()); /* the assignment may be under way on a stream */
    FMM_TRY(fmm_cuda_reserve_kept_tiles(plan));
    FMM_TRY(fmm_cuda_mark_kept_tiles(plan, plan->device->own));
    FMM_CUDA(plan, cudaStreamSynchronize(plan->device->own));
    return GMXFMM_OK;
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
    a.done        = &plan->device->results.as<StepResults>()->gradient_done;
    sum_derivatives<<<blocks_for(a.num_pieces, c_threads / 32), c_threads, 0, stream>>>(a);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}
