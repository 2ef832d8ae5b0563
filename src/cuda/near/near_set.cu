/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The near vectors of the plan's cells, on the device. */
#include <algorithm>
#include <cstdlib>

#include "cuda/near/near.h"

gmxfmm_status fmm_cuda_upload_near_set(gmxfmm_plan* plan)
{
    fmm_device*      d = plan->device;
    const fmm_cells* c = &plan->domain.cells;
    const size_t     w = static_cast<size_t>(2 * c->near_reach + 1),
                 bytes = static_cast<size_t>(c->num_near) * sizeof(int4);
    if (d->near.on_device != NULL && d->near.num_on_device == c->num_near)
    {
        bool same = true;
        for (int o = 0; o < c->num_near; o++)
        {
            const int4 k = d->near.on_device[o];
            same         = same && k.x == c->near[o][0] && k.y == c->near[o][1] && k.z == c->near[o][2];
        }
        if (same)
        {
            return GMXFMM_OK;
        }
    }
    std::free(d->near.on_device);
    d->near.on_device = NULL;
    FMM_TRY(fmm_device_reserve(plan, &d->near.vectors, bytes));
    FMM_TRY(fmm_device_reserve(plan, &d->near.lookup, w * w * w * sizeof(short)));
    int4* vectors = static_cast<int4*>(std::malloc(bytes));
    if (vectors == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    for (int i = 0; i < 3; i++)
    {
        d->near.extent[i] = 0;
    }
    for (int o = 0; o < c->num_near; o++)
    {
        vectors[o] = make_int4(c->near[o][0], c->near[o][1], c->near[o][2], 0);
        for (int i = 0; i < 3; i++)
        {
            d->near.extent[i] = std::max(d->near.extent[i], c->near[o][i]);
        }
    }
    gmxfmm_status status = fmm_cuda_upload(plan, d->near.vectors.memory, vectors, bytes);
    if (status == GMXFMM_OK)
    {
        status = fmm_cuda_upload(plan, d->near.lookup.memory, c->near_lookup, w * w * w * sizeof(short));
    }
    if (status != GMXFMM_OK)
    {
        std::free(vectors);
        return status;
    }
    d->near.reach         = c->near_reach;
    d->near.on_device     = vectors;
    d->near.num_on_device = c->num_near;
    return GMXFMM_OK;
}

void fmm_cuda_destroy_near_set(fmm_device* device)
{
    std::free(device->near.on_device);
}
