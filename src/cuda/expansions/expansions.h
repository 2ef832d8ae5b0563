/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* P2M and L2P on the device. */
#ifndef FMM_CUDA_EXPANSIONS_H
#define FMM_CUDA_EXPANSIONS_H

#include "cuda/expansions/far_part.h"
#include "cuda/geometry.h"
#include "cuda/resources.h"

/* Moments for the background that P2M computes: none; rows of sums of its blocks; and all of these added up. */
enum class Moments
{
    None,
    Rows,
    Whole
};

enum
{
    c_background = 7 /* numbers that L2P needs of the background: moments (6), sum q */
};

/* p2m.cu: reserves memory for the present cells; computes multipoles of a part of the far field on the current device.
 * Its blocks begin at multiples of fmm_cuda_p2m_leaves, so that their sums do not depend on the parts. */
gmxfmm_status fmm_cuda_p2m_reserve(gmxfmm_plan* plan);
int           fmm_cuda_p2m_leaves(const gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_p2m(gmxfmm_plan* plan, const FarPart& far, Moments moments, cudaStream_t stream);

/* Room on another device for what L2P needs of the background; its release. */
gmxfmm_status fmm_cuda_reserve_background(gmxfmm_plan* plan, fmm_device* to);
void          fmm_cuda_release_background(gmxfmm_plan* plan, fmm_device* to);

/* On the first device: adds up the rows of moments if `sum`, and stores what L2P needs of the background at to[0] ..
 * to[num - 1] on other devices. */
gmxfmm_status fmm_cuda_share_moments(gmxfmm_plan* plan, bool sum, double* const* to, int num, cudaStream_t stream);

/* l2p.cu: potentials and fields of the targets in the cells of a part, into the first device's arrays. */
gmxfmm_status fmm_cuda_l2p(gmxfmm_plan* plan, const FarPart& far, cudaStream_t stream);

#endif
