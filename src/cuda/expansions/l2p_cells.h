/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What kernels of L2P have in common (l2p.cu, l2p_gradient.cu): particles of a block's cells, and the background. */
#ifndef FMM_CUDA_L2P_CELLS_H
#define FMM_CUDA_L2P_CELLS_H

#include "cuda/expansions/expansions.h"
#include "cuda/expansions/orders.h"

#include "fmm/math/harmonics.h"

template <class R>
struct L2pArgs
{
    Geometry       g;
    Leaves         leaves;
    int            p, cells_per_block;
    int            begin, end; /* leaves that are evaluated */
    const int*     cell_start;
    const Vec4<R>* xq;
    const R*       field;
    Vec4<R>*       out;
    const double*  moments;      /* of StepResults */
    const double*  total_charge; /* sum q */
    double         background;   /* 2 pi / (3 V), or 0 */
};

/* Stride between the weights of two cells: an odd number of vectors, so that cells are in different banks. */
static __host__ __device__ inline int weight_stride(int p)
{
    return harm_size(p) | 1;
}

template <class R>
static __device__ inline void add_weighted(const Vec4<R>& w, R u, Vec4<R>* sum)
{
    sum->x += w.x * u;
    sum->y += w.y * u;
    sum->z += w.z * u;
    sum->w += w.w * u;
}

/* Field and potential with the background, THEORY (16), of a system periodic along all vectors, whose moments are about
 * the centre of the cell of the transforms: the root on an octree. */
template <class R>
static __device__ inline Vec4<R> finish(const L2pArgs<R>& a, int leaf, const Vec4<R>& u, const Vec4<R>& sum)
{
    const double* m = a.moments;
    Vec4<R>       v = u;
    if (a.leaves.edge > 1)
    {
        R s[3];
        root_offset(a.g, a.leaves.edge, a.leaves.cell[leaf], s);
        v.x += s[0];
        v.y += s[1];
        v.z += s[2];
    }
    const R cq = static_cast<R>(a.background * *a.total_charge), c2 = static_cast<R>(2 * a.background);
    const R d[3] = {static_cast<R>(m[0]), static_cast<R>(m[1]), static_cast<R>(m[2])};
    const R t    = static_cast<R>(a.background * (m[3] + m[4] + m[5]));
    return {c2 * d[0] - 2 * cq * v.x - sum.x, c2 * d[1] - 2 * cq * v.y - sum.y, c2 * d[2] - 2 * cq * v.z - sum.z,
            sum.w + t + cq * (v.x * v.x + v.y * v.y + v.z * v.z) - c2 * (d[0] * v.x + d[1] * v.y + d[2] * v.z)};
}

/* Columns of monic_factor(n, m), n = m..p, one after the other. */
template <int THREADS, class R>
static __device__ void make_factors(int p, R* factor)
{
    for (int m = 0; m <= p; m++)
    {
        for (int i = static_cast<int>(threadIdx.x); i <= p - m; i += THREADS)
        {
            factor[i] = static_cast<R>(monic_factor(m + i, m));
        }
        factor += p + 1 - m;
    }
}

/*
 * The work of a block in items: `size` particles of a cell, or fewer at its end. The items of cell c are item[c] ..
 * item[c + 1] - 1, its particles begin[c] .. end[c] - 1. One warp counts them, for at most 32 cells.
 */
struct BlockItems
{
    int begin[32], end[32], item[33];
};

static __device__ inline void
count_items(const Leaves& leaves, const int* cell_start, int first, int cells, int size, BlockItems* items)
{
    const int lane  = static_cast<int>(threadIdx.x % 32);
    int       begin = 0, end = 0;
    if (lane < cells)
    {
        const int cell = leaves.cell != NULL ? leaves.cell[first + lane] : first + lane;
        begin          = cell_start[cell];
        end            = cell_start[cell + 1];
    }
    int sum = (end - begin + size - 1) / size;
    for (int step = 1; step < 32; step *= 2)
    {
        const int below = __shfl_up_sync(0xffffffffu, sum, step);
        sum += lane >= step ? below : 0;
    }
    items->begin[lane]    = begin;
    items->end[lane]      = end;
    items->item[lane + 1] = sum;
    if (lane == 0)
    {
        items->item[0] = 0;
    }
}

/* The block's cell that an item belongs to. */
static __device__ inline int cell_of_item(const BlockItems& items, int item)
{
    int cell = 0;
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
    {
        cell += items.item[cell + step] <= item ? step : 0;
    }
    return cell;
}

template <class R>
static L2pArgs<R> fmm_cuda_l2p_args(const gmxfmm_plan* plan, const FarRange& far)
{
    const fmm_device* d = plan->device;
    L2pArgs<R>        a;
    a.p            = plan->far.order;
    a.g            = make_geometry(plan);
    a.leaves       = d->far.path->expansions(plan).leaves;
    a.begin        = far.first_cell;
    a.end          = far.end_cell;
    a.cell_start   = far.target_start;
    a.xq           = static_cast<const Vec4<R>*>(far.target_xq);
    a.field        = static_cast<const R*>(far.local);
    a.out          = d->output.far.as<Vec4<R>>();
    a.moments      = far.moments;
    a.total_charge = far.total_charge;
    a.background   = fmm_is_bulk(plan) ? 2 * FMM_PI / (3 * plan->domain.cells.box_volume) : 0;
    return a;
}

#endif
