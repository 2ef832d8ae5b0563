/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of a far field by an octree. */
#ifndef FMM_CUDA_OCTREE_FAR_H
#define FMM_CUDA_OCTREE_FAR_H

#include "cuda/state.h"

extern const DevicePath fmm_cuda_by_octree;

#endif
