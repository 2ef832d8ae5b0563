/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Layout of spectra on the device. Those of lattice sums are pairs (P, Q), the real and imaginary part in the sense of
 * harmonics, without the phase (-i)^n; there is a pair for each degree j and 0 <= m <= j (Q = 0 for m = 0):
 * pair[fmm_pair(top, j, m)][frequency]. Those of coefficients are complex, as the transform writes them: [harm_re or
 * harm_im][frequency].
 */
#ifndef FMM_CUDA_SPECTRUM_H
#define FMM_CUDA_SPECTRUM_H

#include "cuda/state.h"

#include "fmm/math/harmonics.h"

enum
{
    c_staged = 4 /* coefficients that a thread loads at once */
};

/* Where degree 0 of column m would be, so that degree j is at pair_column + j. */
static __host__ __device__ inline int pair_column(int top, int m)
{
    return m * (top + 1) - m * (m - 1) / 2 - m;
}

static __host__ __device__ inline int pair_index(int top, int j, int m)
{
    return pair_column(top, m) + j;
}

static __host__ __device__ inline int num_pairs(int top)
{
    return (top + 1) * (top + 2) / 2;
}

/* v (-i)^n */
template <class R>
static __device__ inline Vec2<R> with_phase(int n, const Vec2<R>& v)
{
    const R a = n & 1 ? v.y : v.x, b = n & 1 ? -v.x : v.y;
    return n & 2 ? Vec2<R>{-a, -b} : Vec2<R>{a, b};
}

/* Copies the coefficients of a block's `width` frequencies, f of the calling lane, to input[pair(p, n, m)][width],
 * without their phases: A and B of A + iB, both complex. width: 32 or, where shared memory is short, 16 or less; the
 * lanes from width on then do the same as those below. */
template <class R>
static __device__ void
stage_coefficients(int p, int num_freq, int width, const Vec2<R>* spectrum, size_t f, Vec4<R>* input)
{
    const int    lane = static_cast<int>(threadIdx.x) & (width - 1), warp = static_cast<int>(threadIdx.x / 32);
    const int    warps  = static_cast<int>(blockDim.x / 32);
    const size_t stride = static_cast<size_t>(num_freq);
    int          m = 0, n = warp;
    for (int pair = warp; pair < num_pairs(p); pair += c_staged * warps)
    {
        Vec2<R> a[c_staged], b[c_staged];
        int     degree[c_staged];
#pragma unroll
        for (int i = 0; i < c_staged; i++, n += warps)
        {
            while (n > p && m < p)
            {
                m++;
                n += m - p - 1; /* the column of m has p + 1 - m degrees from m on */
            }
            degree[i] = min(n, p);
            a[i]      = spectrum[static_cast<size_t>(harm_re(p, degree[i], m)) * stride + f];
            b[i]      = spectrum[static_cast<size_t>(m > 0 ? harm_im(p, degree[i], m) : 0) * stride + f];
            b[i]      = m > 0 ? b[i] : Vec2<R>{0, 0};
        }
#pragma unroll
        for (int i = 0; i < c_staged; i++)
        {
            a[i] = with_phase(degree[i], a[i]);
            b[i] = with_phase(degree[i], b[i]);
            if (pair + i * warps < num_pairs(p))
            {
                input[(pair + i * warps) * width + lane] = {a[i].x, a[i].y, b[i].x, b[i].y};
            }
        }
    }
}

#endif
