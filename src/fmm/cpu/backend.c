/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CPU's row of the table of backends, in each precision. */
#include "fmm/backend.h"

#include <stdlib.h>

#include "fmm/cpu/assign.h"
#include "fmm/cpu/execute.h"
#include "fmm/cpu/m2l/m2l_fft.h"
#include "fmm/cpu/operators/operators.h"

static gmxfmm_status check(int id, char* message, size_t size)
{
    (void)id;
    (void)message;
    (void)size;
    return GMXFMM_OK;
}

static gmxfmm_status create(gmxfmm_plan* plan)
{
    (void)plan;
    /* The planner is the one part of FFTW that several threads may not enter at once by itself. */
    FFTW(make_planner_thread_safe)();
    return GMXFMM_OK;
}

static void destroy(gmxfmm_plan* plan)
{
    free(plan->scratch);
    plan->scratch = NULL;
}

static gmxfmm_status set_charges(gmxfmm_plan* plan)
{
    (void)plan; /* read at each step */
    return GMXFMM_OK;
}

static gmxfmm_status set_exclusions(gmxfmm_plan* plan, const int* start, const int* list, int64_t n)
{
    (void)plan; /* read at assign */
    (void)start;
    (void)list;
    (void)n;
    return GMXFMM_OK;
}

static gmxfmm_status set_grid(gmxfmm_plan* plan)
{
    const gmxfmm_status status = plan->tree != NULL ? FN(fmm_operators_create)(plan) : GMXFMM_OK;
    const int           sums = plan->tree == NULL || plan->periodic; /* no root of an open octree is far from another */
    return status == GMXFMM_OK && sums ? FN(fmm_conv_create)(plan) : status;
}

static void free_grid(gmxfmm_plan* plan)
{
    FN(fmm_conv_destroy)(plan->TN(conv));
    FN(fmm_operators_destroy)(plan->TN(ops));
    plan->TN(conv) = NULL;
    plan->TN(ops)  = NULL;
}

static gmxfmm_status set_shape(gmxfmm_plan* plan)
{
    if (plan->tree != NULL)
    {
        FN(fmm_operators_set_shape)(plan);
    }
    if (plan->tree != NULL && !plan->periodic)
    {
        plan->spectra_valid = plan->virial_spectra_valid = 1; /* there are no sums */
        return GMXFMM_OK;
    }
    return FN(fmm_conv_set_shape)(plan);
}

static gmxfmm_status on_host(gmxfmm_plan* plan, const void** x, size_t num)
{
    (void)plan; /* it is there */
    (void)x;
    (void)num;
    return GMXFMM_OK;
}

static gmxfmm_status assign(gmxfmm_plan* plan, const void* x)
{
    gmxfmm_status status = fmm_cpu_assign(plan, x);
    status               = status == GMXFMM_OK ? FN(fmm_step_reserve)(plan) : status;
    if (status == GMXFMM_OK && plan->tree != NULL)
    {
        const size_t before = plan->bytes;
        status              = FN(fmm_operators_reserve)(plan);
        plan->grid_bytes += plan->bytes - before;
    }
    return status;
}

static gmxfmm_status execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    if (!plan->spectra_valid || (output->want_virial && !plan->virial_spectra_valid))
    {
        const double begin = fmm_time();
        FN(fmm_conv_spectra)(plan, output->want_virial);
        plan->info.time_spectra += fmm_time() - begin;
    }
    return FN(fmm_step)(plan, x, output);
}

extern const fmm_backend FN(fmm_backend_cpu);
const fmm_backend        FN(fmm_backend_cpu) = {
           .method     = GMXFMM_FMM,
           .device     = GMXFMM_CPU,
           .level      = FMM_LEVEL,
           .precisions = 1U << (sizeof(real) == sizeof(double) ? GMXFMM_DOUBLE : GMXFMM_SINGLE),
           .m2l = 1U << GMXFMM_M2L_FFT | 1U << GMXFMM_M2L_ROTATION | 1U << GMXFMM_M2L_SYMMETRIC | 1U << GMXFMM_M2L_NAIVE,
           .max_order          = GMXFMM_MAX_ORDER,
           .max_rotation_order = GMXFMM_MAX_ORDER,
           .has_octree_options = 1,
           .sorts_on_host      = 1,

           .check          = check,
           .create         = create,
           .destroy        = destroy,
           .set_charges    = set_charges,
           .set_receivers  = fmm_keep_receivers,
           .set_exclusions = set_exclusions,
           .set_grid       = set_grid,
           .free_grid      = free_grid,
           .set_shape      = set_shape,
           .on_host        = on_host,
           .extent         = fmm_cpu_extent,
           .assign         = assign,
           .execute        = execute,
};
