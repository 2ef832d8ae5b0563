/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shifts of expansions by half a diagonal of a cell, M2M and L2L, from Upsilon(a + b) = sum Upsilon(a) Upsilon(b):
 *   M_n^m(y + s) = sum_{n' <= n} conj Upsilon_{n-n'}^{m-m'}(s) M_{n'}^{m'},
 *   L_k^l about s = sum_{k' >= k} conj Upsilon_{k'-k}^{l'-l}(-s) L_{k'}^{l'}.
 * The eight children are mirror images of each other, and with T the shift of one and S_i the mirror images, diagonal
 * matrices of signs, all eight are S_i T S_i: sums of their multipoles with the signs of each of the eight characters
 * of the mirror group (a Walsh-Hadamard transform) leave one product with T for eight children: less work than eight
 * shifts by rotation (shift_rotation.c, with options.vertical_rotation) at all orders.
 */
#ifndef FMM_SHIFT_H
#define FMM_SHIFT_H

#include "fmm/cpu/state.h"
#include "fmm/math/portable.h"

/* Reals of a table: blocks rr, ri, ir, ii (fold.h) for each column of the output and of the input, j = 0..p. */
static inline size_t shift_size(int p)
{
    return 4 * (size_t)(p + 1) * (size_t)(p + 1) * (size_t)(p + 1);
}

/* Block 2 im_out + im_in between column `out` and column `in`. */
static inline const real* shift_block(int p, const real* table, int out, int in, int im_out, int im_in)
{
    return table + (size_t)(((out * (p + 1) + in) * 4 + 2 * im_out + im_in) * (p + 1));
}

/* Tables of M2M and L2L for the child at s from its parent's centre. */
void fmm_shift_tables(int p, const double* s, real* up, real* down);

/* M2M of parents first .. first+lanes-1 by rotations: out[num_coef], a lane a parent, in units of the children;
 * work[num_coef]. L2L of parents' locals in units of the children: out[8 x num_coef], mirror image i of child 7. */
void fmm_m2m_rotation(const gmxfmm_plan* plan,
                      const fmm_level*   upper,
                      const fmm_level*   lower,
                      int                first,
                      int                lanes,
                      vreal*             work,
                      vreal*             out);
void fmm_l2l_rotation(const gmxfmm_plan* plan, const vreal* in, vreal* out);

/* Walsh-Hadamard transform of v[8]. */
static inline void shift_hadamard(vreal v[8])
{
    for (int step = 1; step < 8; step *= 2)
    {
        for (int i = 0; i < 8; i++)
        {
            if (!(i & step))
            {
                const vreal a = v[i], b = v[i + step];
                v[i]        = a + b;
                v[i + step] = a - b;
            }
        }
    }
}

/* Values of one coefficient in the cells index[lane]. */
static inline vreal shift_gather(const real* coefficient, const int* index, int contiguous)
{
    vreal v = {0};
    if (contiguous)
    {
        __builtin_memcpy(&v, coefficient + index[0], sizeof(v));
        return v;
    }
    for (int i = 0; i < VLEN; i++)
    {
        v[i] = coefficient[index[i]];
    }
    return v;
}

/* Children `octant` of parents first .. first+lanes-1, the empty cell `empty` in other lanes; returns whether they are
 * VLEN cells in a row. */
static inline int shift_children(const int* child, int first, int lanes, int octant, int empty, int index[VLEN])
{
    int contiguous = 1;
    for (int i = 0; i < VLEN; i++)
    {
        index[i]   = i < lanes ? child[8 * (size_t)(first + i) + (size_t)octant] : empty;
        contiguous = contiguous && index[i] == index[0] + i && index[i] != empty;
    }
    return contiguous;
}

#endif
