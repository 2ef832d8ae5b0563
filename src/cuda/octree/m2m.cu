/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2M, THEORY (30), by sums of children with signs (shift.h). */
#include <algorithm>

#include "cuda/octree/shift_kernels.h"
#include "cuda/octree/sweep.h"

/* Sums of the children's multipoles with the signs of each character c, to w[(c * num_coef + coefficient) * lanes +
 * lane]. */
template <class R>
static __device__ void signed_sums(const ShiftArguments<R>& a, int parent, int lanes, R* w)
{
    const int lane = threadIdx.x % lanes, worker = threadIdx.x / lanes, workers = blockDim.x / lanes;
    int       index[8];
#pragma unroll
    for (int i = 0; i < 8; i++) /* mirror image i of child 7 */
    {
        index[i] = parent < a.num ? a.child[8 * static_cast<size_t>(parent) + (7 ^ i)] : a.empty;
    }
    for (int f = worker; f < a.num_coef; f += workers)
    {
        R v[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
        {
            v[i] = a.lower[f * a.lower_stride + index[i]];
        }
        hadamard(v);
#pragma unroll
        for (int c = 0; c < 8; c++)
        {
            w[(c * a.num_coef + f) * lanes + lane] = v[c];
        }
    }
}

/* Coefficient (n, m) of a parent: the sum of table elements T[n - n'] times the children's sums of the character that
 * belongs to them. */
template <class R>
static __device__ R parent_coefficient(const ShiftArguments<R>& a, int n, int m, int im, int lanes, const R* w)
{
    R sum = 0;
#pragma unroll
    for (int bits = 0; bits < 4; bits++)
    {
        const int parity = bits >> 1, im_in = (bits & 1) ^ im;
        const R*  even = w + shift_character(parity, bits & 1, 0) * a.num_coef * lanes;
        const R*  odd  = w + shift_character(parity, bits & 1, 1) * a.num_coef * lanes;
        for (int m_in = first_column(m, parity, im_in); m_in <= n; m_in += 2)
        {
            const int first = m > m_in ? m - m_in : m_in - m, last = n - m_in; /* of j; x is read backwards */
            const int at = im_in ? harm_im(a.p, m_in, m_in) : harm_re(a.p, m_in, m_in);
            const R*  t  = shift_block(a, m, m_in, im, im_in);
            sum += shift_sum(t, even + (at + last) * lanes, first + (first & 1), last, -lanes);
            sum += shift_sum(t, odd + (at + last) * lanes, first | 1, last, -lanes);
        }
    }
    return sum;
}

enum
{
    c_upThreads   = 512,
    c_upBlocks    = 264, /* two on each multiprocessor of an H200 */
    c_upSplits    = 4,   /* each of these blocks computes all sums of children again */
    c_upMostBytes = 200 * 1024
};

/* Multipoles of the parents of a block, each in one lane of `lanes`: those coefficients that are its part of `splits`.
 */
template <class R>
static __device__ void add_children(const ShiftArguments<R>& a, int parent, int lanes, int split, int splits, R* w)
{
    const int lane = threadIdx.x % lanes, workers = c_upThreads / lanes;
    signed_sums(a, parent, lanes, w);
    __syncthreads();
    for (int f = split * workers + threadIdx.x / lanes; f < a.num_coef; f += splits * workers)
    {
        int n, m, im;
        coefficient(a.p, f, &n, &m, &im);
        const R sum = parent_coefficient(a, n, m, im, lanes, w + lane);
        if (parent < a.num)
        {
            a.upper[f * a.upper_stride + parent] = ldexp(sum, -n); /* in the parent's unit of length */
        }
    }
}

template <class R>
__global__ void __launch_bounds__(c_upThreads) m2m(ShiftArguments<R> a, int lanes)
{
    extern __shared__ double memory[];
    const int                parent = static_cast<int>(blockIdx.x) * lanes + threadIdx.x % lanes;
    add_children(a, parent, lanes, static_cast<int>(blockIdx.y), static_cast<int>(gridDim.y),
                 reinterpret_cast<R*>(memory));
}

template <class R>
__global__ void __launch_bounds__(c_upThreads)
    m2m_sweep(const __grid_constant__ ShiftArguments<R> a, const __grid_constant__ Sweep sweep)
{
    extern __shared__ double memory[];
    const SweepPart          part   = begin_part(sweep);
    const SweepStep&         step   = sweep.step[part.step];
    const int                parent = parent_of(step, part.tile * step.lanes + threadIdx.x % step.lanes, a.num);
    add_children(a, parent, step.lanes, part.split, step.splits, reinterpret_cast<R*>(memory));
    end_part(sweep);
}

/* Lanes for parents that shared memory has room for. */
static int most_lanes(size_t parent_bytes)
{
    int lanes = 32;
    while (lanes > 1 && parent_bytes * static_cast<size_t>(lanes) > c_upMostBytes)
    {
        lanes /= 2;
    }
    return lanes;
}

template <class R>
static gmxfmm_status
launch(fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower, void* stream)
{
    ShiftArguments<R> a = shift_arguments<R>(ops, upper, lower, ops->up_at);
    a.upper             = static_cast<R*>(upper->multipole);
    a.lower             = static_cast<R*>(lower->multipole);
    if (a.num == 0)
    {
        return GMXFMM_OK;
    }
    const size_t   parent_bytes = 8 * static_cast<size_t>(a.num_coef) * sizeof(R);
    const int      lanes        = most_lanes(parent_bytes);
    const unsigned tiles        = static_cast<unsigned>((a.num + lanes - 1) / lanes);
    const dim3     grid(tiles, shift_splits(tiles, c_upBlocks, c_upSplits));
    FMM_CUDA(ops, allow_shared(&ops->allowed, m2m<R>));
    m2m<R>
        <<<grid, c_upThreads, parent_bytes* static_cast<size_t>(lanes), static_cast<cudaStream_t>(stream)>>>(a, lanes);
    FMM_CUDA(ops, cudaGetLastError());
    return GMXFMM_OK;
}

template <class R>
static gmxfmm_status launch_sweep(fmm_octree_operators*     ops,
                                  const fmm_octree_level*   all,
                                  const fmm_octree_parents* parents,
                                  int                       first,
                                  int                       last,
                                  cudaStream_t              stream)
{
    ShiftArguments<R> a            = shift_arguments<R>(ops, all, all, ops->up_at);
    const size_t      parent_bytes = 8 * static_cast<size_t>(a.num_coef) * sizeof(R);
    const int         most         = most_lanes(parent_bytes);
    Sweep             sweep        = make_sweep(ops);
    a.upper = a.lower = static_cast<R*>(all->multipole);
    for (int l = last; l >= first; l--)
    {
        const int num   = num_parents(parents, l);
        int       lanes = 1; /* the fewer, the more threads for the coefficients of a parent */
        while (lanes < most && lanes < num)
        {
            lanes *= 2;
        }
        const int workers = c_upThreads / lanes, tiles = (num + lanes - 1) / lanes;
        const int useful = (a.num_coef + workers - 1) / workers, most_splits = std::min<int>(useful, c_upSplits);
        add_step(&sweep, parents, l, lanes, tiles,
                 static_cast<int>(
                     shift_splits(static_cast<unsigned>(tiles), c_upBlocks, static_cast<unsigned>(most_splits))));
    }
    if (sweep.num == 0)
    {
        return GMXFMM_OK;
    }
    FMM_CUDA(ops, allow_shared(&ops->allowed, m2m_sweep<R>));
    m2m_sweep<R><<<num_parts(sweep), c_upThreads, parent_bytes* static_cast<size_t>(most), stream>>>(a, sweep);
    FMM_CUDA(ops, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status
fmm_octree_m2m(fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower, void* stream)
{
    return ops->is_double ? launch<double>(ops, upper, lower, stream) : launch<float>(ops, upper, lower, stream);
}

gmxfmm_status fmm_octree_m2m_sweep(fmm_octree_operators*     ops,
                                   const fmm_octree_level*   all,
                                   const fmm_octree_parents* parents,
                                   int                       first,
                                   int                       last,
                                   void*                     stream)
{
    const cudaStream_t s = static_cast<cudaStream_t>(stream);
    return ops->is_double ? launch_sweep<double>(ops, all, parents, first, last, s)
                          : launch_sweep<float>(ops, all, parents, first, last, s);
}
