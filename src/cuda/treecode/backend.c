/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The treecode's row of the table of backends for CUDA: arrays of the host, trees and lists made there; modified
 * charges and sums on the device. */
#include "fmm/treecode/backend.h"

#include "cuda/device.h"
#include "fmm/plan.h"

extern const struct treecode_stages treecode_on_cuda; /* device.cu */

extern const fmm_backend fmm_backend_treecode_cuda;
const fmm_backend        fmm_backend_treecode_cuda = {
           .method     = GMXFMM_TREECODE,
           .device     = GMXFMM_CUDA,
           .precisions = 1U << GMXFMM_SINGLE | 1U << GMXFMM_DOUBLE,
           .treecode   = &treecode_on_cuda,

           .check         = fmm_device_check,
           .create        = fmm_treecode_create,
           .destroy       = fmm_treecode_destroy,
           .set_charges   = fmm_treecode_set_charges,
           .set_receivers = fmm_keep_receivers,
           .on_host       = fmm_treecode_on_host,
           .assign        = fmm_treecode_assign,
           .execute       = fmm_treecode_execute,
           .get_info      = fmm_treecode_get_info,
};
