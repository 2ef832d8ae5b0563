/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The box on the device. */
#include <cstring>

#include "cuda/particles/particles.h"

__global__ void write_box(BoxValues from, BoxValues* to)
{
    *to = from;
}

gmxfmm_status fmm_cuda_store_box(gmxfmm_plan* plan, cudaStream_t stream)
{
    fmm_device*     d   = plan->device;
    const BoxValues now = make_box(plan);
    if (!d->domain.box_in_graph && std::memcmp(&now, &d->domain.stored, sizeof(now)) == 0)
    {
        return GMXFMM_OK;
    }
    bool capturing = false;
    FMM_TRY(fmm_cuda_is_capturing(plan, stream, &capturing));
    write_box<<<1, 1, 0, stream>>>(now, d->domain.box.as<BoxValues>());
    FMM_CUDA(plan, cudaGetLastError());
    d->domain.box_in_graph = d->domain.box_in_graph || capturing;
    d->domain.stored       = capturing ? d->domain.stored : now;
    return GMXFMM_OK;
}
