/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* L2L, THEORY (31), by sums of products with signs (shift.h). */
#include "cuda/octree/shift_kernels.h"

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

template <class R>
__global__ void __launch_bounds__(c_downThreads) l2l(ShiftArguments<R> a)
{
    extern __shared__ double memory[];
    R*                       in   = reinterpret_cast<R*>(memory);
    const int                lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = c_downThreads / 32;
    const int                parent = static_cast<int>(blockIdx.x) * 32 + lane;
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
    for (int f = static_cast<int>(blockIdx.y) * warps + warp; f < a.num_coef; f += gridDim.y * warps)
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
    const unsigned warps = c_downThreads / 32, num_coef = static_cast<unsigned>(a.num_coef);
    const unsigned tiles = static_cast<unsigned>((a.num + 31) / 32);
    const dim3     grid(tiles, shift_splits(tiles, c_downBlocks, (num_coef + warps - 1) / warps));
    FMM_CUDA(ops, allow_shared(&ops->allowed, l2l<R>));
    l2l<R><<<grid, c_downThreads, 32 * num_coef * sizeof(R), static_cast<cudaStream_t>(stream)>>>(a);
    FMM_CUDA(ops, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status
fmm_octree_l2l(fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower, void* stream)
{
    return ops->is_double ? launch<double>(ops, upper, lower, stream) : launch<float>(ops, upper, lower, stream);
}
