/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The treecode's row of the table of backends for CUDA: trees, lists and sums are made on the device; arrays are of
 * either side. */
#include "fmm/treecode/backend.h"

#include "cuda/device.h"
#include "cuda/treecode/backend.h"
#include "cuda/treecode/step.h"
#include "fmm/particles.h"
#include "fmm/state.h"
#include "fmm/status.h"
#include "fmm/treecode/treecode.h"

extern const struct treecode_stages treecode_on_cuda; /* device.cu */

gmxfmm_status treecode_cuda_on_host(gmxfmm_plan* plan, const void** x, size_t num)
{
    const size_t  word   = plan->options.array_type == GMXFMM_DOUBLE ? sizeof(double) : sizeof(float);
    treecode*     sums   = fmm_treecode_sums(plan);
    gmxfmm_status status = treecode_device_on_host(sums, x, num * word);
    return status == GMXFMM_OK ? status : fmm_fail(plan, status, "%s", treecode_message(sums));
}

gmxfmm_status treecode_cuda_set_targets(gmxfmm_plan* plan, const void* x)
{
    const gmxfmm_status status = treecode_cuda_on_host(plan, &x, 3 * (size_t)plan->particles.num_targets);
    return status == GMXFMM_OK ? fmm_particles_keep_targets(plan, x) : status;
}

static gmxfmm_status enqueue(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, void* stream)
{
    const TreecodeStep step = {output->potential, output->field, output->force,      output->energy,
                               output->status,    stream,        output->arrays_done};
    treecode*          sums = fmm_treecode_sums(plan);
    if (output->virial != NULL || output->stages != 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "the treecode has no %s: leave %s, or use method = fmm",
                        output->virial != NULL ? "virial" : "stages that could be left out",
                        output->virial != NULL ? "it out" : "stages at 0");
    }
    if (output->add_forces != 0 || output->arrays_after != NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                        "the treecode has no add_forces and no arrays_after: leave them at 0, or use method = fmm");
    }
    const gmxfmm_status status = treecode_device_enqueue(sums, x, &step);
    return status == GMXFMM_OK ? status : fmm_fail(plan, status, "%s", treecode_message(sums));
}

static unsigned capabilities(const gmxfmm_plan* plan)
{
    (void)plan;
    return GMXFMM_CAN_TARGETS | GMXFMM_CAN_ENQUEUE;
}

extern const fmm_backend fmm_backend_treecode_ranks_cuda; /* ranks/backend.c */
extern const fmm_backend fmm_backend_treecode_cuda;
const fmm_backend        fmm_backend_treecode_cuda = {
           .method     = GMXFMM_TREECODE,
           .device     = GMXFMM_CUDA,
           .precisions = 1U << GMXFMM_SINGLE | 1U << GMXFMM_DOUBLE,
           .treecode   = &treecode_on_cuda,

           .no_exclusions      = "the treecode excludes no pairs: use method = fmm",
           .no_enqueue_assign  = "the treecode takes no new positions for its clusters on a stream: call gmxfmm_assign",
           .no_enqueue_charges = "the treecode takes no charges on a stream: call gmxfmm_set_charges",
           .no_time_stages     = "the treecode has no stages that could be timed alone",

           .capabilities  = capabilities,
           .check         = fmm_device_check,
           .create        = fmm_treecode_create,
           .destroy       = fmm_treecode_destroy,
           .set_charges   = fmm_treecode_set_charges,
           .set_targets   = treecode_cuda_set_targets,
           .on_host       = treecode_cuda_on_host,
           .assign        = fmm_treecode_assign,
           .execute       = fmm_treecode_execute,
           .measure_again = fmm_treecode_measure_again,
           .get_info      = fmm_treecode_get_info,
           .enqueue       = enqueue,

           .on_ranks = &fmm_backend_treecode_ranks_cuda,
};
