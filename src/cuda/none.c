/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A build without CUDA: options.c refuses device = cuda, so that nothing but the first two functions is ever called. */
#include <stdio.h>

#include "cuda/device.h"
#include "fmm/plan.h"

gmxfmm_status fmm_device_check(int id, char* message, size_t size)
{
    (void)id;
    snprintf(message, size, "this build has no device support: use the CPU");
    return GMXFMM_ERROR_UNSUPPORTED;
}

void fmm_device_destroy(gmxfmm_plan* plan)
{
    (void)plan;
}

static gmxfmm_status unsupported(gmxfmm_plan* plan)
{
    return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "no device support in this build");
}

gmxfmm_status fmm_device_create(gmxfmm_plan* plan)
{
    return unsupported(plan);
}

gmxfmm_status fmm_device_set_charges(gmxfmm_plan* plan)
{
    return unsupported(plan);
}

gmxfmm_status fmm_device_set_receivers(gmxfmm_plan* plan, const void* x)
{
    (void)x;
    return unsupported(plan);
}

gmxfmm_status fmm_device_set_exclusions(gmxfmm_plan* plan, const int* start, const int* list, int64_t n)
{
    (void)start;
    (void)list;
    (void)n;
    return unsupported(plan);
}

gmxfmm_status fmm_device_set_grid(gmxfmm_plan* plan)
{
    return unsupported(plan);
}

gmxfmm_status fmm_device_set_shape(gmxfmm_plan* plan)
{
    return unsupported(plan);
}

gmxfmm_status fmm_device_on_host(gmxfmm_plan* plan, const void** x, size_t num)
{
    (void)x;
    (void)num;
    return unsupported(plan);
}

gmxfmm_status fmm_device_extent(gmxfmm_plan* plan, const void** x, double* low, double* high)
{
    (void)x;
    (void)low;
    (void)high;
    return unsupported(plan);
}

gmxfmm_status fmm_device_assign(gmxfmm_plan* plan, const void* x)
{
    (void)x;
    return unsupported(plan);
}

gmxfmm_status fmm_device_enqueue_spectra(gmxfmm_plan* plan, void* stream)
{
    (void)stream;
    return unsupported(plan);
}

gmxfmm_status fmm_device_enqueue_assign(gmxfmm_plan* plan, const void* x, void* stream)
{
    (void)x;
    (void)stream;
    return unsupported(plan);
}

gmxfmm_status fmm_device_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    (void)x;
    (void)output;
    return unsupported(plan);
}

gmxfmm_status fmm_device_enqueue(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, void* stream)
{
    (void)x;
    (void)output;
    (void)stream;
    return unsupported(plan);
}
