/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * M2L by the loops of THEORY (5), mapped to threads (Kohnke et al. 2020, approach 1), for comparison: each thread
 * computes one coefficient L_k^l of one target. It goes through the list and, as in that paper, reads source and
 * operator for each of its products from global memory.
 */
#include "cuda/octree/m2l_element.h"

enum
{
    c_run = 32 /* translations whose sum is formed separately, so that rounding errors do not grow with the list */
};

template <class R>
__global__ void naive(M2lElement<R> a, R* local)
{
    const int pairs  = (a.p + 1) * (a.p + 2) / 2; /* (k, l), 0 <= l <= k */
    const int index  = blockIdx.x * blockDim.x + threadIdx.x;
    const int target = index / pairs;
    if (target >= a.lists.num)
    {
        return;
    }
    int k, l;
    triangle(index % pairs, &k, &l);
    const int slab = slab_of(a.lists, target);
    R         re = 0, im = 0;
    const int num = a.num_list[slab];
    for (int first = 0; first < num; first += c_run)
    {
        R run_re = 0, run_im = 0;
        for (int t = first; t < min(first + c_run, num); t++)
        {
            const OctreeTranslation x      = a.list[slab][t];
            const int               source = source_of(a.lists, target, x);
            a.add(x.vector, a.multipole + source, a.lists.stride, k, l, &run_re, &run_im);
        }
        re += run_re;
        im += run_im;
    }
    local[harm_re(a.p, k, l) * a.lists.stride + target] += re;
    if (l > 0)
    {
        local[harm_im(a.p, k, l) * a.lists.stride + target] += im;
    }
}

template <class R>
static gmxfmm_status
launch(fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower, cudaStream_t stream)
{
    const M2lElement<R> a       = m2l_element<R>(ops, upper, lower);
    const long          threads = static_cast<long>(lower->num) * ((ops->order + 1) * (ops->order + 2) / 2);
    naive<R><<<static_cast<unsigned>((threads + 255) / 256), 256, 0, stream>>>(a, static_cast<R*>(lower->local));
    FMM_CUDA(ops, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_octree_m2l_naive(fmm_octree_operators*   ops,
                                   const fmm_octree_level* upper,
                                   const fmm_octree_level* lower,
                                   void*                   stream)
{
    return ops->is_double ? launch<double>(ops, upper, lower, static_cast<cudaStream_t>(stream))
                          : launch<float>(ops, upper, lower, static_cast<cudaStream_t>(stream));
}
