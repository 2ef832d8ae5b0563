/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The far field on several devices of the process, for cells of one level in a periodic system.
 *
 * Each part (parts.h) has layers of cells, of which it computes P2M, the transforms of planes and L2P, and columns
 * of frequencies, for which it computes the transforms along the first direction and the product. In between all
 * devices store what another one goes on with straight into its spectrum: columns after the planes, planes after the
 * product. Nothing about a cell, a line or a frequency depends on where it is computed, and the background's moments
 * are summed by blocks that do not depend on the parts; so bits do not, either.
 *
 * Lattice sums and the virial stay on the first device: it sends each part the spectrum of S for its columns when the
 * box changes shape, and gets the multipoles' spectrum of those columns in a step with a virial.
 */
#ifndef FMM_CUDA_SLABS_H
#define FMM_CUDA_SLABS_H

#include "cuda/expansions/expansions.h"
#include "cuda/near/range.h"
#include "cuda/particles/particles.h"
#include "cuda/resources.h"

/* Whether the plan's far field can be shared. */
bool fmm_cuda_can_have_slabs(const gmxfmm_plan* plan);

/* Room on the other devices for the far field of the present cells, if it is shared or may be. A device that has none
 * leaves all of it to the first, and is named in the note. Waits. Errors: DEVICE. */
gmxfmm_status fmm_cuda_reserve_slabs(gmxfmm_plan* plan);

/* Gives that room back. Waits. Errors: DEVICE. */
gmxfmm_status fmm_cuda_release_slabs(gmxfmm_plan* plan);

/* Shares of the far field, which assignments copied from now on follow; spectra that there are go to the devices on the
 * stream. */
gmxfmm_status fmm_cuda_set_slabs(gmxfmm_plan* plan, const double* share, cudaStream_t stream);

/* After S was computed: what other devices need of it. */
gmxfmm_status fmm_cuda_share_spectra(gmxfmm_plan* plan, cudaStream_t stream);

/* The particles whose positions other devices' far field needs: permute stores them there, so that no device waits for
 * another one's kernel to copy them. */
PositionCopies fmm_cuda_position_copies(const gmxfmm_plan* plan);

/* From positions to transformed planes; the moments for the background, which are added up if `sum`; from there to the
 * particles. ready: event after which spectra and moments can be used, before_product: spectra are new, too. All
 * devices but the first record far_done of their own. */
gmxfmm_status fmm_cuda_begin_slabs(gmxfmm_plan* plan, Moments moments);
gmxfmm_status fmm_cuda_slab_moments(gmxfmm_plan* plan, bool sum, cudaStream_t stream);
gmxfmm_status fmm_cuda_end_slabs(gmxfmm_plan* plan, bool virial, cudaEvent_t ready, bool before_product);

/* Before the virial: the spectrum of all columns on the first device. */
gmxfmm_status fmm_cuda_wait_gathered(gmxfmm_plan* plan, cudaStream_t stream);

#endif
