/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Steps that the host waits for: their arrays on the device, and what a step says of itself. */
#ifndef FMM_CUDA_SYNCHRONOUS_H
#define FMM_CUDA_SYNCHRONOUS_H

#include "cuda/resources.h"

/* Memory of the device for what a synchronous execute is asked for. sums: energies and virial. */
gmxfmm_device_output fmm_cuda_arrays(const gmxfmm_plan* plan, const gmxfmm_output* output, double* sums);

/* The status of a finished step, from what it left in *results. */
gmxfmm_status fmm_cuda_check_results(gmxfmm_plan* plan, const StepResults* results);

#endif
