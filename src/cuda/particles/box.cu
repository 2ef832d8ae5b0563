/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The box on the device. */
#include <cstring>

#include "cuda/particles/particles.h"

__global__ void write_box(BoxValues from, BoxValues* to)
{
    *to = from;
}

gmxfmm_status fmm_cuda_create_domain(gmxfmm_plan* plan)
{
    DeviceDomain* d = &plan->device->domain;
    FMM_TRY(fmm_device_reserve(plan, &d->box, sizeof(BoxValues)));
    if (fmm_has_given(plan))
    {
        FMM_TRY(fmm_device_reserve(plan, &d->no_box, sizeof(BoxValues)));
        FMM_CUDA(plan, cudaMemset(d->no_box.memory, 0, sizeof(BoxValues)));
    }
    return GMXFMM_OK;
}

/* Whether graphs that write the box of their capture may still be launched. */
static bool graphs_write(const gmxfmm_plan* plan)
{
    return plan->device->domain.box_graphs == plan->graph_version;
}

BoxValues fmm_cuda_take_box(gmxfmm_plan* plan)
{
    const BoxValues now         = make_box(plan);
    plan->device->domain.stored = graphs_write(plan) ? BoxValues{} : now;
    return now;
}

gmxfmm_status fmm_cuda_store_box(gmxfmm_plan* plan, cudaStream_t stream)
{
    DeviceDomain*   d   = &plan->device->domain;
    const BoxValues now = make_box(plan);
    if (std::memcmp(&now, &d->stored, sizeof(now)) == 0)
    {
        return GMXFMM_OK;
    }
    bool capturing = false;
    FMM_TRY(fmm_cuda_is_capturing(plan, stream, &capturing));
    write_box<<<1, 1, 0, stream>>>(now, d->box.as<BoxValues>());
    FMM_CUDA(plan, cudaGetLastError());
    d->box_graphs = capturing ? plan->graph_version : d->box_graphs;
    d->stored     = graphs_write(plan) ? BoxValues{} : now;
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_begin_next_box(gmxfmm_plan* plan, cudaStream_t stream)
{
    DeviceDomain* d = &plan->device->domain;
    FMM_TRY(fmm_device_reserve(plan, &d->next_box, sizeof(BoxValues)));
    FMM_CUDA(plan,
             cudaMemcpyAsync(d->next_box.memory, d->box.memory, sizeof(BoxValues), cudaMemcpyDeviceToDevice, stream));
    return GMXFMM_OK;
}

void fmm_cuda_swap_box(fmm_device* device)
{
    device->domain.box.swap(&device->domain.next_box);
}

gmxfmm_status fmm_cuda_reserve_box_copy(gmxfmm_plan* plan, fmm_device* to)
{
    return fmm_device_reserve(plan, fmm_has_given(plan) ? &to->domain.no_box : &to->domain.box, sizeof(BoxValues));
}
