/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* P2M and L2P on the device. */
#ifndef FMM_CUDA_EXPANSIONS_H
#define FMM_CUDA_EXPANSIONS_H

#include "cuda/geometry.h"
#include "cuda/resources.h"

/* p2m.cu: reserves memory for the present cells; computes multipoles and, with `sums`, the moments for the background.
 */
gmxfmm_status fmm_cuda_p2m_reserve(gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_p2m(gmxfmm_plan* plan, bool sums, cudaStream_t stream);

/* l2p.cu: potentials and fields of the targets. */
gmxfmm_status fmm_cuda_l2p(gmxfmm_plan* plan, cudaStream_t stream);

#endif
