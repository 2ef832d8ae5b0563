/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stages of an assignment in order: particles into cells, excluded pairs, levels of an octree (search steps). */
#include "cuda/device.h"
#include "cuda/execute.h"
#include "cuda/near/near.h"
#include "cuda/near/parts.h"
#include "cuda/particles/particles.h"

/* Room for the rows of the near virial. Where P2P writes one for each tile, as many as there are tiles now or can be
 * after an assignment enqueued on a stream. */
static gmxfmm_status reserve_near_virial(gmxfmm_plan* plan)
{
    fmm_device*        d       = plan->device;
    const ParticleSet* targets = targets_of(d);
    const int          tiles   = enqueues_assign(plan) ? fmm_cuda_most_tiles(plan, targets) : targets->launched_tiles;
    const size_t       rows    = static_cast<size_t>(fmm_cuda_near_virial_rows(plan, tiles));
    return fmm_device_reserve(plan, &d->near_virial, (rows + 1) * 6 * real_size(plan));
}

/* The assignment on other devices that share the near field, and their shares. */
static gmxfmm_status assign_parts(gmxfmm_plan* plan, const void* x)
{
    FMM_TRY(fmm_cuda_reserve_parts(plan));
    fmm_cuda_set_warps(plan->device);
    if (fmm_cuda_shares_are_old(plan))
    {
        FMM_TRY(fmm_cuda_measure_shares(plan, x));
    }
    return fmm_cuda_assign_parts(plan, plan->device->own);
}

gmxfmm_status fmm_device_assign(gmxfmm_plan* plan, const void* x)
{
    fmm_device* d = plan->device;
    DeviceScope scope(d->id);
    if (make_geometry(plan).num_cells <= 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "%d x %d x %d cells are too many for a GPU: use less depth",
                        plan->domain.grid[0], plan->domain.grid[1], plan->domain.grid[2]);
    }
    FMM_CUDA(plan, cudaDeviceSynchronize()); /* steps still running use what is replaced here */
    FMM_TRY(fmm_cuda_upload_near_set(plan));
    FMM_TRY(fmm_cuda_reserve_sort(plan));
    FMM_TRY(fmm_cuda_on_device(plan, &x));
    FMM_TRY(fmm_cuda_sort_and_wait(plan, x));
    FMM_TRY(fmm_cuda_excluded_pairs(plan, d->own));
    if (d->path->assign != NULL)
    {
        FMM_TRY(d->path->assign(plan, d->own));
    }
    FMM_TRY(reserve_near_virial(plan));
    if (has_parts(d))
    {
        FMM_TRY(assign_parts(plan, x));
    }
    FMM_CUDA(plan, cudaStreamSynchronize(d->own));
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_enqueue_assign(gmxfmm_plan* plan, const void* x, void* stream)
{
    const cudaStream_t on = static_cast<cudaStream_t>(stream);
    DeviceScope        scope(plan->device->id);
    FMM_TRY(fmm_cuda_sort_sources(plan, x, on));
    FMM_TRY(fmm_cuda_excluded_pairs(plan, on));
    return has_parts(plan->device) ? fmm_cuda_assign_parts(plan, on) : GMXFMM_OK;
}
