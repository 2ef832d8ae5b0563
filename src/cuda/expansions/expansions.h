/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* P2M and L2P on the device. */
#ifndef FMM_CUDA_EXPANSIONS_H
#define FMM_CUDA_EXPANSIONS_H

#include "cuda/expansions/far_range.h"
#include "cuda/geometry.h"
#include "cuda/resources.h"

/* p2m.cu: reserves memory for the present cells; computes multipoles, each device those of its range, on its stream for
 * the far field, and moments for the background: where devices share it rows of sums of its blocks, else all of these
 * added up. Blocks begin at multiples of fmm_cuda_p2m_leaves, so that their sums do not depend on the ranges. */
gmxfmm_status fmm_cuda_p2m_reserve(gmxfmm_plan* plan);
int           fmm_cuda_p2m_leaves(const gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_p2m(gmxfmm_plan* plan, bool moments);

/* Room on another device for what L2P needs of the background; its release. */
gmxfmm_status fmm_cuda_reserve_background(gmxfmm_plan* plan, fmm_device* to);
void          fmm_cuda_release_background(gmxfmm_plan* plan, fmm_device* to);

/* On the first device: adds up the rows of moments if `sum`, and stores what L2P needs of the background at to[0] ..
 * to[num - 1] on other devices. */
gmxfmm_status fmm_cuda_share_moments(gmxfmm_plan* plan, bool sum, double* const* to, int num, cudaStream_t stream);

/* l2p.cu: potentials and fields of the targets, by each device in the cells of its range, into the first device's
 * arrays. gradient: that of the field, too. ready: event after which the background's moments can be used, or NULL. */
gmxfmm_status fmm_cuda_l2p(gmxfmm_plan* plan, bool gradient, cudaEvent_t ready);

/* l2p_gradient.cu: the same on one device, with the gradient. */
gmxfmm_status fmm_cuda_l2p_gradient(gmxfmm_plan* plan, const FarRange& far, cudaStream_t stream);

#endif
