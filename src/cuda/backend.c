/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CUDA's row of the table of backends. */
#include "cuda/device.h"
#include "cuda/octree/operators.h"
#include "fmm/backend.h"
#include "cuda/costs.h"
#include "fmm/state.h"

static void free_grid(gmxfmm_plan* plan)
{
    (void)plan; /* the buffers are kept for later use */
}

static unsigned capabilities(const gmxfmm_plan* plan)
{
    const int      own     = plan->particles.num_targets == 0; /* particles are their own targets */
    const unsigned charges = own ? GMXFMM_CAN_VIRIAL | GMXFMM_CAN_CHARGE_GRADIENT : 0;
    const int      assigns = own && fmm_has_fixed_cells(plan);
    const unsigned more =
        (assigns ? (unsigned)GMXFMM_CAN_ENQUEUE_ASSIGN : 0U) | (fmm_device_has_one(plan) ? GMXFMM_CAN_DIPOLES : 0U);
    return charges | GMXFMM_CAN_EXCLUDE | GMXFMM_CAN_TARGETS | GMXFMM_CAN_ENQUEUE | GMXFMM_CAN_ENQUEUE_CHARGES | more;
}

const fmm_backend fmm_backend_cuda = {
    .method     = GMXFMM_FMM,
    .device     = GMXFMM_CUDA,
    .precisions = 1U << GMXFMM_SINGLE | 1U << GMXFMM_DOUBLE,
    .m2l = 1U << GMXFMM_M2L_FFT | 1U << GMXFMM_M2L_ROTATION | 1U << GMXFMM_M2L_SYMMETRIC | 1U << GMXFMM_M2L_DYNAMIC |
           1U << GMXFMM_M2L_NAIVE,
    .max_order          = FMM_OCTREE_MAX_ORDER,
    .max_rotation_order = FMM_OCTREE_MAX_ROTATION_ORDER,
    .costs              = &fmm_costs_cuda,
    .turns_axes         = 1,

    .capabilities = capabilities,

    .check                  = fmm_device_check,
    .create                 = fmm_device_create,
    .destroy                = fmm_device_destroy,
    .set_charges            = fmm_device_set_charges,
    .set_dipoles            = fmm_device_set_dipoles,
    .take_dipoles           = fmm_device_take_dipoles,
    .set_targets            = fmm_device_set_targets,
    .set_exclusions         = fmm_device_set_exclusions,
    .set_charge_derivatives = fmm_device_set_charge_derivatives,
    .set_grid               = fmm_device_set_grid,
    .free_grid              = free_grid,
    .set_shape              = fmm_device_set_shape,
    .on_host                = fmm_device_on_host,
    .extent                 = fmm_device_extent,
    .assign                 = fmm_device_assign,
    .execute                = fmm_device_execute,
    .time_steps             = fmm_device_time_steps,
    .time_stages            = fmm_device_time_stages,
    .set_first_share        = fmm_device_set_first_share,
    .get_info               = fmm_device_get_info,
    .enqueue_assign         = fmm_device_enqueue_assign,
    .enqueue_assign_part    = fmm_device_enqueue_assign_part,
    .enqueue_charges        = fmm_device_enqueue_charges,
    .graphs_follow          = fmm_device_graphs_follow,
    .enqueue_box            = fmm_device_enqueue_box,
    .enqueue                = fmm_device_enqueue,
    .enqueue_along          = fmm_device_enqueue_along,
    .cells_hold             = fmm_device_cells_hold,
};
