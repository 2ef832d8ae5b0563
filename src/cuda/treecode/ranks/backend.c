/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The treecode's row of the table of backends for several ranks with devices; arrays that come may be of either side.
 */
#include "fmm/treecode/backend.h"
#include "fmm/treecode/ranks/backend.h"

#include "cuda/device.h"
#include "cuda/treecode/backend.h"
#include "fmm/treecode/state.h"

extern const struct treecode_stages treecode_on_cuda_ranks; /* stages.cu */

extern const fmm_backend fmm_backend_treecode_ranks_cuda;
const fmm_backend        fmm_backend_treecode_ranks_cuda = {
           .method     = GMXFMM_TREECODE,
           .device     = GMXFMM_CUDA,
           .precisions = 1U << GMXFMM_SINGLE | 1U << GMXFMM_DOUBLE,
           .treecode   = &treecode_on_cuda_ranks,

           .no_exclusions      = "the treecode excludes no pairs: use method = fmm",
           .no_enqueue         = TREECODE_RANKS_NO_STREAM,
           .no_enqueue_assign  = TREECODE_RANKS_NO_STREAM,
           .no_enqueue_charges = TREECODE_RANKS_NO_STREAM,
           .no_time_stages     = TREECODE_RANKS_NO_STREAM,

           .capabilities  = fmm_treecode_ranks_capabilities,
           .check         = fmm_device_check,
           .create        = fmm_treecode_ranks_create,
           .destroy       = fmm_treecode_ranks_destroy,
           .set_charges   = fmm_treecode_ranks_set_charges,
           .set_targets   = treecode_cuda_set_targets,
           .on_host       = treecode_cuda_on_host,
           .assign        = fmm_treecode_ranks_assign,
           .execute       = fmm_treecode_ranks_execute,
           .measure_again = fmm_treecode_measure_again,
           .get_info      = fmm_treecode_ranks_get_info,

           .get_ranks_info    = fmm_treecode_ranks_info,
           .reset_ranks_times = fmm_treecode_ranks_reset_times,
};
