/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One coefficient of one translation, by THEORY (5); used by m2l_naive.cu and m2l_dynamic.cu. */
#ifndef FMM_CUDA_M2L_ELEMENT_H
#define FMM_CUDA_M2L_ELEMENT_H

#include "fmm/math/harmonics.h"
#include "cuda/octree/state.h"

template <class R>
struct M2lElement
{
    OctreeLists              lists;
    const OctreeTranslation* list[8];
    int                      num_list[8];
    int                      p, theta_size;
    const R*                 theta; /* by vector, degrees to 2p + 1 */
    const R*                 multipole;

    /* Adds sum_{n,m} M_n^m Theta_{n+k}^{m+l}(R) of the displacement `vector` to re, im. Coefficients of the source are
     * at m[coefficient * stride]. */
    __device__ __forceinline__ void add(int vector, const R* m, size_t stride, int k, int l, R* re, R* im) const
    {
        add_from(theta + static_cast<size_t>(vector) * theta_size, m, stride, k, l, re, im);
    }

    __device__ __forceinline__ void
    add_from(const R* operator_, const R* multipoles, size_t stride, int k, int l, R* re, R* im) const
    {
        R sum_re = 0, sum_im = 0;
        for (int n = 0; n <= p; n++)
        {
            for (int m = -n; m <= n; m++)
            {
                const int a = m < 0 ? -m : m, b = m + l < 0 ? -m - l : m + l;
                R         m_re = multipoles[harm_re(p, n, a) * stride];
                R         m_im = a > 0 ? multipoles[harm_im(p, n, a) * stride] : R(0);
                R         t_re = operator_[harm_re(2 * p + 1, n + k, b)];
                R         t_im = b > 0 ? operator_[harm_im(2 * p + 1, n + k, b)] : R(0);
                if (m < 0) /* X_n^{-m} = (-1)^m conj X_n^m */
                {
                    m_re = a & 1 ? -m_re : m_re;
                    m_im = a & 1 ? m_im : -m_im;
                }
                if (m + l < 0)
                {
                    t_re = b & 1 ? -t_re : t_re;
                    t_im = b & 1 ? t_im : -t_im;
                }
                sum_re += m_re * t_re - m_im * t_im;
                sum_im += m_re * t_im + m_im * t_re;
            }
        }
        *re += sum_re;
        *im += sum_im;
    }
};

template <class R>
M2lElement<R> m2l_element(const fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower)
{
    M2lElement<R> a;
    a.lists      = octree_lists(ops, upper, lower);
    a.p          = ops->order;
    a.theta      = octree_table<R>(ops, ops->theta_at);
    a.theta_size = static_cast<int>(ops->theta_size);
    a.multipole  = static_cast<const R*>(lower->multipole);
    for (int c = 0; c < 8; c++)
    {
        a.list[c]     = ops->list[c];
        a.num_list[c] = ops->num_list[c];
    }
    return a;
}

/* Pair i of (0,0), (1,0), (1,1), (2,0), .. */
static __device__ __forceinline__ void triangle(int i, int* k, int* l)
{
    int row = 0;
    while (i > row)
    {
        i -= row + 1;
        row++;
    }
    *k = row;
    *l = i;
}

static __device__ __forceinline__ int slab_of(const OctreeLists& lists, int cell)
{
    int slab = 0;
    while (cell >= lists.slab[slab + 1])
    {
        slab++;
    }
    return slab;
}

static __device__ __forceinline__ int source_of(const OctreeLists& lists, int target, const OctreeTranslation& t)
{
    const int near = lists.near[static_cast<size_t>(lists.parent[target]) * lists.num_near + t.near];
    return lists.child[8 * static_cast<size_t>(near) + t.octant];
}

#endif
