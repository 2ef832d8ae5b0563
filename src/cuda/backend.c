/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CUDA's row of the table of backends. */
#include "cuda/device.h"
#include "cuda/octree/operators.h"
#include "fmm/backend.h"
#include "fmm/state.h"

static void free_grid(gmxfmm_plan* plan)
{
    (void)plan; /* buffers stay, to be used again */
}

static gmxfmm_status set_shape(gmxfmm_plan* plan)
{
    const gmxfmm_status status = fmm_device_set_shape(plan);
    plan->far.spectra_valid        = status == GMXFMM_OK; /* as far as the host is concerned */
    return status;
}

const fmm_backend fmm_backend_cuda = {
    .method     = GMXFMM_FMM,
    .device     = GMXFMM_CUDA,
    .precisions = 1U << GMXFMM_SINGLE | 1U << GMXFMM_DOUBLE,
    .m2l = 1U << GMXFMM_M2L_FFT | 1U << GMXFMM_M2L_ROTATION | 1U << GMXFMM_M2L_SYMMETRIC | 1U << GMXFMM_M2L_DYNAMIC |
           1U << GMXFMM_M2L_NAIVE,
    .max_order          = FMM_OCTREE_MAX_ORDER,
    .max_rotation_order = FMM_OCTREE_MAX_ROTATION_ORDER,

    .check          = fmm_device_check,
    .create         = fmm_device_create,
    .destroy        = fmm_device_destroy,
    .set_charges    = fmm_device_set_charges,
    .set_targets    = fmm_device_set_targets,
    .set_exclusions = fmm_device_set_exclusions,
    .set_grid       = fmm_device_set_grid,
    .free_grid      = free_grid,
    .set_shape      = set_shape,
    .on_host        = fmm_device_on_host,
    .extent         = fmm_device_extent,
    .assign         = fmm_device_assign,
    .execute        = fmm_device_execute,
    .time_steps     = fmm_device_time_steps,
    .enqueue_assign = fmm_device_enqueue_assign,
    .enqueue_box    = fmm_device_enqueue_box,
    .enqueue        = fmm_device_enqueue,
};
