/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2M, THEORY (30), by sums of children with signs (shift.h). */
#include "cuda/octree/shift_kernels.h"

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

template <class R>
__global__ void __launch_bounds__(c_upThreads) m2m(ShiftArguments<R> a, int lanes)
{
    extern __shared__ double memory[];
    R*                       w       = reinterpret_cast<R*>(memory);
    const int                lane    = threadIdx.x % lanes;
    const int                parent  = static_cast<int>(blockIdx.x) * lanes + lane;
    const int                workers = c_upThreads / lanes;
    signed_sums(a, parent, lanes, w);
    __syncthreads();
    for (int f = static_cast<int>(blockIdx.y) * workers + threadIdx.x / lanes; f < a.num_coef; f += gridDim.y * workers)
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
    const size_t parent_bytes = 8 * static_cast<size_t>(a.num_coef) * sizeof(R);
    int          lanes        = 32;
    while (lanes > 1 && parent_bytes * static_cast<size_t>(lanes) > c_upMostBytes)
    {
        lanes /= 2;
    }
    const unsigned tiles = static_cast<unsigned>((a.num + lanes - 1) / lanes);
    const dim3     grid(tiles, shift_splits(tiles, c_upBlocks, c_upSplits));
    FMM_CUDA(ops, allow_shared(&ops->allowed, m2m<R>));
    m2m<R>
        <<<grid, c_upThreads, parent_bytes* static_cast<size_t>(lanes), static_cast<cudaStream_t>(stream)>>>(a, lanes);
    FMM_CUDA(ops, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status
fmm_octree_m2m(fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower, void* stream)
{
    return ops->is_double ? launch<double>(ops, upper, lower, stream) : launch<float>(ops, upper, lower, stream);
}
