/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * M2L by dynamic parallelism (Kohnke et al. 2020, approach 2), for comparison: each thread of the parent kernel
 * launches a child kernel for the children of one cell. In the child kernel each block has one child, each thread one
 * coefficient; a block copies the multipoles and the operator of each translation to shared memory.
 */
#include "cuda/octree/m2l_element.h"

enum
{
    c_pendingLaunches = 8192
};

template <class R>
__global__ void child_kernel(M2lElement<R> a, const int* children, R* local)
{
    extern __shared__ double memory[];
    const int                target = children[blockIdx.x], num_coef = (a.p + 1) * (a.p + 1);
    if (target >= a.lists.num)
    {
        return;
    }
    R*  multipoles = reinterpret_cast<R*>(memory);
    R*  theta      = multipoles + num_coef;
    int k = 0, l = 0;
    triangle(threadIdx.x, &k, &l);
    const bool               is_mine = k <= a.p;
    const OctreeTranslation* list    = a.list[0];
    int                      num     = a.num_list[0];
#pragma unroll
    for (int c = 1; c < 8; c++) /* children of index c are in slab c */
    {
        list = blockIdx.x == c ? a.list[c] : list;
        num  = blockIdx.x == c ? a.num_list[c] : num;
    }
    R re = 0, im = 0;
    for (int t = 0; t < num; t++)
    {
        const OctreeTranslation x      = list[t];
        const int               source = source_of(a.lists, target, x);
        for (int i = threadIdx.x; i < num_coef; i += blockDim.x)
        {
            multipoles[i] = a.multipole[i * a.lists.stride + source];
        }
        for (int i = threadIdx.x; i < a.theta_size; i += blockDim.x)
        {
            theta[i] = a.theta[static_cast<size_t>(x.vector) * a.theta_size + i];
        }
        __syncthreads();
        if (is_mine)
        {
            a.add_from(theta, multipoles, 1, k, l, &re, &im);
        }
        __syncthreads();
    }
    if (is_mine)
    {
        local[harm_re(a.p, k, l) * a.lists.stride + target] += re;
        if (l > 0)
        {
            local[harm_im(a.p, k, l) * a.lists.stride + target] += im;
        }
    }
}

template <class R>
__global__ void parent_kernel(M2lElement<R> a, R* local, int num_parents, int threads, int bytes)
{
    const int parent       = blockIdx.x * blockDim.x + threadIdx.x;
    bool      has_children = false;
    for (int c = 0; c < 8 && parent < num_parents; c++)
    {
        has_children = has_children || a.lists.child[8 * static_cast<size_t>(parent) + c] < a.lists.num;
    }
    if (has_children)
    {
        child_kernel<R>
            <<<8, threads, bytes, cudaStreamFireAndForget>>>(a, a.lists.child + 8 * static_cast<size_t>(parent), local);
    }
}

template <class R>
static gmxfmm_status
launch(fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower, cudaStream_t stream)
{
    const M2lElement<R> a       = m2l_element<R>(ops, upper, lower);
    const int           pairs   = (ops->order + 1) * (ops->order + 2) / 2;
    const int           threads = (pairs + 31) / 32 * 32;
    const int           bytes   = (ops->num_coef + static_cast<int>(ops->theta_size)) * static_cast<int>(sizeof(R));
    parent_kernel<R><<<static_cast<unsigned>((upper->num + 31) / 32), 32, 0, stream>>>(a, static_cast<R*>(lower->local),
                                                                                       upper->num, threads, bytes);
    FMM_CUDA(ops, cudaGetLastError());
    return GMXFMM_OK;
}

cudaError_t fmm_octree_prepare_dynamic()
{
    return cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, c_pendingLaunches);
}

gmxfmm_status fmm_octree_m2l_dynamic(fmm_octree_operators*   ops,
                                     const fmm_octree_level* upper,
                                     const fmm_octree_level* lower,
                                     void*                   stream)
{
    return ops->is_double ? launch<double>(ops, upper, lower, static_cast<cudaStream_t>(stream))
                          : launch<float>(ops, upper, lower, static_cast<cudaStream_t>(stream));
}
