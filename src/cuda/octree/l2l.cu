/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* L2L, THEORY (31), by sums of products with signs (shift.h). */
#include "cuda/octree/shift_kernels.h"
#include "cuda/octree/sweep.h"

enum
{
    c_downThreads = 256,
    c_downBlocks  = 1056 /* eight on each multiprocessor of an H200 */
};

/* Products for coefficient (k, l) of the children, summed by character; in: the parent's locals, in[coefficient * 32].
 */
template <class R>
static __device__ void products(const ShiftArguments<R>& a, int k, int l, int im, const R* in, R (&v)[8])
{
    const int p = a.p, last = p - k;
#pragma unroll
    for (int bits = 0; bits < 4; bits++)
    {
        const int parity = bits >> 1, im_in = (bits & 1) ^ im;
        R         even = 0, odd = 0;
        for (int l_in = first_column(l, parity, im_in); l_in <= p; l_in += 2)
        {
            const int from  = l > l_in ? l - l_in : l_in - l;
            const int first = from > l_in - k ? from : l_in - k;
            const int at    = im_in ? harm_im(p, l_in, l_in) : harm_re(p, l_in, l_in);
            const R*  t     = shift_block(a, l, l_in, im, im_in);
            const R*  x     = in + (at + k - l_in) * 32;
            even += shift_sum(t, x, first + (first & 1), last, 32);
            odd += shift_sum(t, x, first | 1, last, 32);
        }
        v[shift_character(parity, bits & 1, 0)] = even;
        v[shift_character(parity, bits & 1, 1)] = odd;
    }
}

/* Adds to the locals of the children of a block's parents, one in each lane: those coefficients that are its part of
 * `splits`. */
template <class R>
static __device__ void add_parents(const ShiftArguments<R>& a, int parent, int split, int splits, R* in)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = c_downThreads / 32;
    for (int f = warp; f < a.num_coef; f += warps)
    {
        int n, m, im;
        coefficient(a.p, f, &n, &m, &im);
        /* in the children's unit of length */
        in[f * 32 + lane] = parent < a.num ? ldexp(a.upper[f * a.upper_stride + parent], -(n + 1)) : R(0);
    }
    __syncthreads();
    int child[8];
#pragma unroll
    for (int i = 0; i < 8; i++) /* mirror image i of child 7 */
    {
        child[i] = parent < a.num ? a.child[8 * static_cast<size_t>(parent) + (7 ^ i)] : a.empty;
    }
    for (int f = split * warps + warp; f < a.num_coef; f += splits * warps)
    {
        int n, m, im;
        R   v[8];
        coefficient(a.p, f, &n, &m, &im);
        products(a, n, m, im, in + lane, v);
        hadamard(v);
#pragma unroll
        for (int i = 0; i < 8; i++)
        {
            if (child[i] != a.empty)
            {
                a.lower[f * a.lower_stride + child[i]] += v[i];
            }
        }
    }
}

template <class R>
__global__ void __launch_bounds__(c_downThreads) l2l(ShiftArguments<R> a)
{
    extern __shared__ double memory[];
    const int                parent = static_cast<int>(blockIdx.x) * 32 + threadIdx.x % 32;
    add_parents(a, parent, static_cast<int>(blockIdx.y), static_cast<int>(gridDim.y), reinterpret_cast<R*>(memory));
}

template <class R>
__global__ void __launch_bounds__(c_downThreads)
    l2l_sweep(const __grid_constant__ ShiftArguments<R> a, const __grid_constant__ Sweep sweep)
{
    extern __shared__ double memory[];
    const SweepPart          part   = begin_part(sweep);
    const SweepStep&         step   = sweep.step[part.step];
    const int                parent = parent_of(step, part.tile * 32 + threadIdx.x % 32, a.num);
    add_parents(a, parent, part.split, step.splits, reinterpret_cast<R*>(memory));
    end_part(sweep);
}

/* Blocks among which the coefficients of the parents of each tile are divided. */
static unsigned splits_of(int tiles, int num_coef)
{
    const unsigned warps = c_downThreads / 32;
    return shift_splits(static_cast<unsigned>(tiles), c_downBlocks,
                        (static_cast<unsigned>(num_coef) + warps - 1) / warps);
}

template <class R>
static gmxfmm_status
launch(fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower, void* stream)
{
    ShiftArguments<R> a = shift_arguments<R>(ops, upper, lower, ops->down_at);
    a.upper             = static_cast<R*>(upper->local);
    a.lower             = static_cast<R*>(lower->local);
    if (a.num == 0)
    {
        return GMXFMM_OK;
    }
    const int    tiles = (a.num + 31) / 32;
    const size_t bytes = 32 * static_cast<size_t>(a.num_coef) * sizeof(R);
    const dim3   grid(static_cast<unsigned>(tiles), splits_of(tiles, a.num_coef));
    FMM_CUDA(ops, allow_shared(&ops->allowed, l2l<R>));
    l2l<R><<<grid, c_downThreads, bytes, static_cast<cudaStream_t>(stream)>>>(a);
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
    ShiftArguments<R> a     = shift_arguments<R>(ops, all, all, ops->down_at);
    const size_t      bytes = 32 * static_cast<size_t>(a.num_coef) * sizeof(R);
    Sweep             sweep = make_sweep(ops);
    a.upper = a.lower = static_cast<R*>(all->local);
    for (int l = first; l <= last; l++)
    {
        const int tiles = (num_parents(parents, l) + 31) / 32;
        add_step(&sweep, parents, l, 32, tiles, static_cast<int>(splits_of(tiles, a.num_coef)));
    }
    if (sweep.num == 0)
    {
        return GMXFMM_OK;
    }
    FMM_CUDA(ops, allow_shared(&ops->allowed, l2l_sweep<R>));
    l2l_sweep<R><<<num_parts(sweep), c_downThreads, bytes, stream>>>(a, sweep);
    FMM_CUDA(ops, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status
fmm_octree_l2l(fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower, void* stream)
{
    return ops->is_double ? launch<double>(ops, upper, lower, stream) : launch<float>(ops, upper, lower, stream);
}

gmxfmm_status fmm_octree_l2l_sweep(fmm_octree_operators*     ops,
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
