/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2M, THEORY (30), by sums of children with signs (shift.h). */
#include "shift_kernels.h"

/* Children's multipoles with the signs of character c: w[(c * num_coef + coefficient) * lanes + lane]. */
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

/* Coefficient (n, m) of a parent: table elements T[n - n'], with the sum of the character that belongs to them. */
template <class R>
static __device__ R parent_coefficient(const ShiftArguments<R>& a, int n, int m, int im, int lanes, const R* w)
{
    const int p   = a.p;
    R         sum = 0;
    for (int m_in = 0; m_in <= p; m_in++)
    {
        const int from = m > m_in ? m - m_in : m_in - m;
        for (int im_in = 0; im_in <= (m_in > 0); im_in++)
        {
            const int c    = fold_character(m, m, im) ^ fold_character(m_in, m_in, im_in);
            const int z    = (m + m_in) & 1;
            const int at   = im_in ? harm_im(p, m_in, m_in) : harm_re(p, m_in, m_in);
            const R*  even = w + ((c & 6) | z) * a.num_coef * lanes;
            const R*  odd  = w + ((c & 6) | !z) * a.num_coef * lanes;
            const R*  t    = shift_block(a, m, m_in, im, im_in);
            for (int j = from; j <= n - m_in; j++)
            {
                sum += t[j] * ((j & 1) ? odd : even)[(at + n - j - m_in) * lanes];
            }
        }
    }
    return sum;
}

template <class R>
__global__ void __launch_bounds__(c_shiftThreads) m2m(ShiftArguments<R> a, int lanes)
{
    extern __shared__ double memory[];
    R*                       w    = reinterpret_cast<R*>(memory);
    const int                lane = threadIdx.x % lanes, parent = blockIdx.x * lanes + lane;
    signed_sums(a, parent, lanes, w);
    __syncthreads();
    for (int f = threadIdx.x / lanes; f < a.num_coef; f += blockDim.x / lanes)
    {
        int n, m, im;
        coefficient(a.p, f, &n, &m, &im);
        const R sum = parent_coefficient(a, n, m, im, lanes, w + lane);
        if (parent < a.num)
        {
            a.upper[f * a.upper_stride + parent] = ldexp(sum, -n); /* in units of the parent: half as many */
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
    return launch_shift(ops, a, m2m<R>, static_cast<cudaStream_t>(stream));
}

gmxfmm_status
fmm_octree_m2m(fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower, void* stream)
{
    return ops->is_double ? launch<double>(ops, upper, lower, stream) : launch<float>(ops, upper, lower, stream);
}
