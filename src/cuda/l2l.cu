/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* L2L, THEORY (31), by sums of products with signs (shift.h). */
#include "shift_kernels.h"

/* Products for coefficient (k, l) of the children by character: even and odd differences k' - k of degrees are of
 * characters that differ in z; in holds the parent's locals, in[coefficient * lanes]. */
template <class R>
static __device__ void products(const ShiftArguments<R>& a, int k, int l, int im, int lanes, const R* in, R (&v)[8])
{
    const int p = a.p;
#pragma unroll
    for (int c = 0; c < 8; c++)
    {
        v[c] = 0;
    }
    for (int l_in = 0; l_in <= p; l_in++)
    {
        const int from  = l > l_in ? l - l_in : l_in - l;
        const int first = from > l_in - k ? from : l_in - k;
        for (int im_in = 0; im_in <= (l_in > 0); im_in++)
        {
            const int c      = fold_character(l, l, im) ^ fold_character(l_in, l_in, im_in);
            const int z      = (l + l_in) & 1;
            const int at     = im_in ? harm_im(p, l_in, l_in) : harm_re(p, l_in, l_in);
            const R*  t      = shift_block(a, l, l_in, im, im_in);
            R         sum[2] = {0, 0};
            for (int j = first; j <= p - k; j++)
            {
                const R x = t[j] * in[(at + k + j - l_in) * lanes];
                sum[0] += j & 1 ? R(0) : x;
                sum[1] += j & 1 ? x : R(0);
            }
            /* not v[c], which would put v into memory */
#pragma unroll
            for (int i = 0; i < 8; i++)
            {
                v[i] += i == ((c & 6) | z) ? sum[0] : i == ((c & 6) | !z) ? sum[1] : R(0);
            }
        }
    }
}

template <class R>
__global__ void __launch_bounds__(c_shiftThreads) l2l(ShiftArguments<R> a, int lanes)
{
    extern __shared__ double memory[];
    R*                       in   = reinterpret_cast<R*>(memory);
    const int                lane = threadIdx.x % lanes, worker = threadIdx.x / lanes, workers = blockDim.x / lanes;
    const int                parent = blockIdx.x * lanes + lane;
    for (int f = worker; f < a.num_coef; f += workers)
    {
        int n, m, im;
        coefficient(a.p, f, &n, &m, &im);
        /* in units of the children */
        in[f * lanes + lane] = parent < a.num ? ldexp(a.upper[f * a.upper_stride + parent], -(n + 1)) : R(0);
    }
    __syncthreads();
    for (int f = worker; f < a.num_coef && parent < a.num; f += workers)
    {
        int n, m, im;
        R   v[8];
        coefficient(a.p, f, &n, &m, &im);
        products(a, n, m, im, lanes, in + lane, v);
        hadamard(v);
#pragma unroll
        for (int i = 0; i < 8; i++) /* mirror image i of child 7 */
        {
            const int child = a.child[8 * static_cast<size_t>(parent) + (7 ^ i)];
            if (child != a.empty)
            {
                a.lower[f * a.lower_stride + child] += v[i];
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
    return launch_shift(ops, a, l2l<R>, static_cast<cudaStream_t>(stream));
}

gmxfmm_status
fmm_octree_l2l(fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower, void* stream)
{
    return ops->is_double ? launch<double>(ops, upper, lower, stream) : launch<float>(ops, upper, lower, stream);
}
