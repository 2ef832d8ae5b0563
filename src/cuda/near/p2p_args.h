/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What P2P reads and writes. */
#ifndef FMM_CUDA_P2P_ARGS_H
#define FMM_CUDA_P2P_ARGS_H

#include "cuda/state.h"

template <class R>
struct P2pArgs
{
    Geometry         g;
    int              self; /* the targets are the sources */
    const int*       num_tiles;
    const Tile*      tiles;      /* at least one for every warp */
    const int*       cell_start; /* of sources */
    const int*       special_start;
    const Special*   specials;
    const int4*      near_vectors;
    const Vec4<R>*   xq;     /* sources */
    const Vec4<R>*   target; /* targets */
    Vec4<R>*         out;
    R*               virial; /* 6 for each tile, or for each block of near_faces */
    const BoxValues* box;
    R                away;      /* x of what has no charge, and where no target is */
    R                least;     /* min_distance squared */
    int              small;     /* near vectors are longer than the grid in some direction */
    int              extent[3]; /* of the near vectors, across faces of the box */
    const int*       tile_start;
    /* Of leaves of several levels: what is near to leaf c, runs[run_start[c]] .. runs[run_start[c + 1] - 1], first
     * particle and number, its own first; NULL: near_vectors tell it. */
    const int*  run_start;
    const int2* runs;
};

/* Beside it of a plan with dipoles. */
template <class R>
struct DipoleArgs
{
    const Vec4<R>* mu;        /* of sources, in the unit u */
    const Vec4<R>* target_mu; /* NULL: targets of their own, which have none */
    Symmetric<R>*  gradient;  /* of the field, in the unit of positions */
    R              unit;      /* u in that unit */
};

/* p2p.cu: of a device, all tiles of the first. float or double as the plan's precision. */
template <class R>
P2pArgs<R> fmm_cuda_p2p_args(const gmxfmm_plan* plan, const fmm_device* device);
template <class R>
DipoleArgs<R> fmm_cuda_dipole_args(const gmxfmm_plan* plan);

/* p2p_dipoles.h: fmm_cuda_p2p and fmm_cuda_near_faces with dipoles, on one device. adds_virial: that of each pair. */
template <class R>
gmxfmm_status
fmm_cuda_p2p_dipoles(gmxfmm_plan* plan, const StepWanted& wanted, bool adds_virial, int warps, cudaStream_t stream);
template <class R>
gmxfmm_status fmm_cuda_near_faces_dipoles(gmxfmm_plan* plan, int faces, cudaStream_t stream);

#endif
