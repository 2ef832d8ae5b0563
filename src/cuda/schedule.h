/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Streams and events of a device's steps, when these have lattice sums, and what runs beside their chain. */
#ifndef FMM_CUDA_SCHEDULE_H
#define FMM_CUDA_SCHEDULE_H

#include "cuda/resources.h"

/* On the current device, which is this one. Errors: DEVICE. */
gmxfmm_status fmm_cuda_create_schedule(gmxfmm_plan* plan, fmm_device* device);
void          fmm_cuda_destroy_schedule(fmm_device* device);

/* Whether the background's moments have a kernel of their own beside P2M: sums over all blocks at the end of P2M would
 * make the chain longer. Those of dipoles always have. */
bool fmm_cuda_moments_beside(const gmxfmm_plan* plan);

/* Whether particles that have left their cells are looked for behind these moments, for which the chain does not wait,
 * and not where positions are placed. */
bool fmm_cuda_looks_beside(const gmxfmm_plan* plan, unsigned stages);

/* Whether a step has lattice sums to compute, or to wait for. */
bool fmm_cuda_wants_spectra(const gmxfmm_plan* plan, bool virial);

/* Waits for lattice sums that are still being computed on the stream `prefetch`, and enqueues those that are wanted, if
 * `spectra`. In a captured graph both the wait and the kernels run at each launch. */
gmxfmm_status fmm_cuda_make_spectra(gmxfmm_plan* plan, bool virial, bool spectra, cudaStream_t stream);

/* After the far field was enqueued: the spectra for the virial of a new box in advance, if a step with the last box
 * wanted a virial. */
gmxfmm_status fmm_cuda_prefetch_spectra(gmxfmm_plan* plan, bool virial);

#endif
