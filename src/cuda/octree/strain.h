/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Forces between expansions for the strain derivative of an octree's far energy, THEORY (35), as computed by a thread
 * of strain.cu. Also plain C++, so that it can be checked without a device.
 *
 * Expansions are at x[coefficient * stride], in the order of harmonics.h.
 */
#ifndef FMM_CUDA_OCTREE_STRAIN_H
#define FMM_CUDA_OCTREE_STRAIN_H

#include <stddef.h>

#include "fmm/math/harmonics.h"

enum
{
    c_strainDegrees = 4 /* of locals computed in one pass through the multipoles of a source */
};

/* X_n^m for any m, 0 where |m| > n. */
template <class R, class A>
static FMM_HD inline void strain_element(int p, const R* x, size_t stride, int n, int m, A* re, A* im)
{
    const int a = m < 0 ? -m : m;
    *re = *im = 0;
    if (a <= n)
    {
        int re_sign, im_sign;
        harm_signs(m, &re_sign, &im_sign);
        *re = A(re_sign) * static_cast<A>(x[static_cast<size_t>(harm_re(p, n, a)) * stride]);
        if (a > 0)
        {
            *im = A(im_sign) * static_cast<A>(x[static_cast<size_t>(harm_im(p, n, a)) * stride]);
        }
    }
}

/* Adds the force on multipoles m of order p in L_k^l and L_k^{-l}, 1 <= k <= p + 1, l >= 0; see fmm_expansion_force of
 * src/fmm/cpu/octree/strain.c. */
template <class R, class A>
static FMM_HD inline void strain_add_force(int p, const R* m, size_t stride, int k, int l, A re, A im, A* force)
{
    const A s = A((k & 1 ? 1 : -1) * (l > 0 ? 2 : 1)), half = s / 2;
    A       mid_re, mid_im, up_re, up_im, down_re, down_im;
    strain_element(p, m, stride, k - 1, l, &mid_re, &mid_im);
    strain_element(p, m, stride, k - 1, l + 1, &up_re, &up_im);
    strain_element(p, m, stride, k - 1, l - 1, &down_re, &down_im);
    force[0] += ((down_re - up_re) * re - (down_im - up_im) * im) * half;
    force[1] += ((down_im + up_im) * re + (down_re + up_re) * im) * half;
    force[2] += (mid_re * re - mid_im * im) * s;
}

/* The blocks of fold.h for the columns m of the input and l of the output, by degree of Theta. */
template <class R>
struct StrainColumns
{
    const R *ar, *ai, *br,
        *bi; /* Theta^{m+l}, Theta^{|l-m|} by degree; for columns without imaginary part, the real part again */
    R   a_im, b_re, b_im; /* factors */
    int top;

    FMM_HD StrainColumns(int top_, const R* theta, int m, int l)
    {
        const int c = m + l, d = l > m ? l - m : m - l;
        const int sign = m == 0 ? 0 : l < m ? (l & 1 ? -1 : 1) : (m & 1 ? -1 : 1);
        top            = top_;
        ar             = theta + (harm_column(top, c) - c);
        ai             = c > 0 ? ar + (top + 1 - c) : ar;
        br             = theta + (harm_column(top, d) - d);
        bi             = d > 0 ? br + (top + 1 - d) : br;
        a_im           = c > 0 ? R(1) : R(0);
        b_re           = static_cast<R>(sign);
        b_im           = d == 0 ? R(0) : static_cast<R>(l < m ? -sign : sign);
    }

    /* rr, ri, ir, ii of degree j; zero above the top. */
    FMM_HD inline void get(int j, R* block) const
    {
        const bool is_inside = j <= top;
        const R    x = is_inside ? ar[j] : R(0), y = is_inside ? a_im * ai[j] : R(0);
        const R    cr = is_inside ? b_re * br[j] : R(0), ci = is_inside ? b_im * bi[j] : R(0);
        block[0] = x + cr;
        block[1] = ci - y;
        block[2] = y + ci;
        block[3] = x - cr;
    }
};

/*
 * L_k^l, THEORY (5), k = first .. first + c_strainDegrees - 1, of a source with multipoles m of order p, to degree q of
 * them; theta has degrees to 2p + 1. For one m the blocks are Hankel in n and k: a new degree n takes one new block.
 */
template <class R>
static FMM_HD inline void
strain_locals(int p, int q, const R* theta, const R* source, size_t stride, int l, int first, R* re, R* im)
{
    enum
    {
        K = c_strainDegrees
    };
    for (int i = 0; i < K; i++)
    {
        re[i] = im[i] = 0;
    }
    for (int m = 0; m <= q; m++)
    {
        const StrainColumns<R> columns(2 * p + 1, theta, m, l);
        const R*               x = source + static_cast<size_t>(harm_re(p, m, m)) * stride;
        const R*               y = m > 0 ? source + static_cast<size_t>(harm_im(p, m, m)) * stride : x;
        R                      block[K][4];
        for (int i = 0; i < K - 1; i++)
        {
            columns.get(m + first + i, block[i]);
        }
        for (int n = m; n <= q; n++, x += stride, y += stride)
        {
            const R m_re = *x, m_im = m > 0 ? *y : R(0);
            columns.get(n + first + K - 1, block[K - 1]);
            for (int i = 0; i < K; i++)
            {
                re[i] += block[i][0] * m_re + block[i][1] * m_im;
                im[i] += block[i][2] * m_re + block[i][3] * m_im;
            }
            for (int i = 0; i < K - 1; i++)
            {
                for (int j = 0; j < 4; j++)
                {
                    block[i][j] = block[i + 1][j];
                }
            }
        }
    }
}

/* Adds part `share` of `shares` of the force on the multipoles `target` in the field of `source`, both of order p, by a
 * translation of order q. */
template <class R>
static FMM_HD inline void strain_add_m2l_force(
    int p, int q, const R* theta, const R* source, const R* target, size_t stride, int share, int shares, R* force)
{
    int item = 0;
    for (int l = 0; l <= q + 1; l++)
    {
        for (int first = l > 0 ? l : 1; first <= q + 1; first += c_strainDegrees, item++)
        {
            if (item % shares == share)
            {
                R re[c_strainDegrees], im[c_strainDegrees];
                strain_locals(p, q, theta, source, stride, l, first, re, im);
                for (int i = 0; i < c_strainDegrees; i++)
                {
                    if (first + i <= q + 1)
                    {
                        strain_add_force(p, target, stride, first + i, l, re[i], im[i], force);
                    }
                }
            }
        }
    }
}

/* L_k^l of a child from its parent's locals, in units of the child, THEORY (31); upsilon is that of the child's centre
 * from the parent's. */
template <class R>
static FMM_HD inline void
strain_shifted(int p, const double* upsilon, const R* parent, size_t stride, int k, int l, double* re, double* im)
{
    double weight = 0.5;
    for (int n = 0; n < k; n++)
    {
        weight *= 0.5;
    }
    *re = *im = 0;
    for (int n = k; n <= p; n++, weight *= -0.5)
    {
        for (int d = k - n; d <= n - k; d++)
        {
            double u_re, u_im, l_re, l_im;
            strain_element(p, upsilon, 1, n - k, d, &u_re, &u_im);
            strain_element(p, parent, stride, n, l + d, &l_re, &l_im);
            *re += weight * (u_re * l_re + u_im * l_im);
            *im += weight * (u_re * l_im - u_im * l_re);
        }
    }
}

/* Adds part `share` of `shares` of the force on the multipoles `child` in the field of the parent's locals. */
template <class R>
static FMM_HD inline void strain_add_l2l_force(int           p,
                                               const double* upsilon,
                                               const R*      parent,
                                               size_t        parent_stride,
                                               const R*      child,
                                               size_t        child_stride,
                                               int           share,
                                               int           shares,
                                               double*       force)
{
    int item = 0;
    for (int k = 1; k <= p; k++)
    {
        for (int l = 0; l <= k; l++, item++)
        {
            if (item % shares == share)
            {
                double re, im;
                strain_shifted(p, upsilon, parent, parent_stride, k, l, &re, &im);
                strain_add_force(p, child, child_stride, k, l, re, im, force);
            }
        }
    }
}

/* Layout of the table of displacements and shifts, all double, that fmm_octree_strain_table fills. */
enum
{
    c_strainVector = 5 /* doubles of a displacement: x, y, z; factor; order of translations */
};

static inline size_t strain_child_at(int num_vectors)
{
    return c_strainVector * static_cast<size_t>(num_vectors);
}

static inline size_t strain_upsilon_at(int num_vectors)
{
    return strain_child_at(num_vectors) + c_strainVector * 8;
}

static inline size_t strain_table_size(int p, int num_vectors)
{
    return strain_upsilon_at(num_vectors) + 8 * static_cast<size_t>(harm_size(p));
}

/* strain.cu: fills the table for displacements vector[num_vectors][3], in cells, and the orders of translations
 * along them. */
void fmm_octree_strain_table(
    int p, int num_vectors, const int* vector, const int* order_of, const double* cell, double* table);

#endif
