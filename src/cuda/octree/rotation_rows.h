/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parts of the kernels of m2l_rotation.cu: tables and the division of work among warps, as compile-time constants, and
 * rotations of the coefficients of one degree, in registers. */
#ifndef FMM_CUDA_ROTATION_ROWS_H
#define FMM_CUDA_ROTATION_ROWS_H

#define FMM_HD constexpr __host__ __device__
#include "fmm/math/harmonics.h"
#include "fmm/math/rotation.h"

#include "cuda/octree/rotation_orders.h"

namespace rotation
{

/* A compile-time constant (std::integral_constant, which NVRTC does not have). */
template <int N>
struct Constant
{
    enum : int
    {
        value = N
    };
};

template <int From, int To, class F>
__device__ __forceinline__ void static_for(F&& f)
{
    if constexpr (From < To)
    {
        f(Constant<From>{});
        static_for<From + 1, To>(f);
    }
}

/* Elements of the flips of degrees <= P, of the kinds First .. First + Num - 1, and binomials (n+k)!/(n! k!). */
template <class R, int P, int First, int Num>
struct Tables
{
    R flip[Num][rot_flip_offset(P + 1)];
    R binomial[P + 1][P + 1];
};

template <class R, int P, int First, int Num>
constexpr Tables<R, P, First, Num> make_tables()
{
    Tables<R, P, First, Num> t{};
    double                   below[(P + 1) * (P + 1)]  = {1};
    double                   b[(P + 1) * (P + 1)]      = {1};
    double                   element[rot_flip_size(P)] = {};
    double                   binomial[P + 1]           = {};
    for (int n = 0, at = 0; n <= P; n++)
    {
        if (n > 0)
        {
            rot_next_flip(n, below, b);
        }
        for (int kind = 0; kind < Num; kind++)
        {
            rot_flip_elements(n, b, static_cast<rot_flip_kind>(First + kind), element);
            for (int i = 0; i < rot_flip_size(n); i++)
            {
                t.flip[kind][at + i] = static_cast<R>(element[i]);
            }
        }
        at += rot_flip_size(n);
        for (int i = 0; i < (n + 1) * (n + 1); i++)
        {
            below[i] = b[i];
        }
    }
    for (int k = 0; k <= P; k++)
    {
        rot_binomials(k, P, binomial);
        for (int n = 0; n <= P; n++)
        {
            t.binomial[k][n] = static_cast<R>(binomial[n]);
        }
    }
    return t;
}

/* ---- division of work in a group of warps: a warp rotates some degrees and translates some columns ---- */

template <class R>
FMM_HD int group_warps(int p)
{
    return fmm_rotation_group_warps(p, sizeof(R) == sizeof(double));
}

/* The degrees and columns (real and imaginary part of one m) of each warp. They are assigned in the order of their
 * cost, that of rotations and that of products, the most expensive first, each to the warp with the least work. */
template <int P, int Warps>
struct Partition
{
    int degree_warp[P + 1];
    int degree_at[P + 1]; /* where a degree's sums begin among those of its warp */
    int column_warp[P + 1];
    int sums[Warps]; /* number of coefficients of each warp */
    int most;
};

FMM_HD int least(const int* cost, int num)
{
    int best = 0;
    for (int i = 1; i < num; i++)
    {
        best = cost[i] < cost[best] ? i : best;
    }
    return best;
}

template <int P, int Warps>
FMM_HD Partition<P, Warps> divide_work()
{
    Partition<P, Warps> l{};
    int                 cost[Warps] = {0};
    for (int n = P; n >= 0; n--)
    {
        const int warp   = least(cost, Warps);
        l.degree_warp[n] = warp;
        l.degree_at[n]   = l.sums[warp];
        l.sums[warp] += 2 * n + 1;
        cost[warp] += 2 * rot_flip_size(n) + 14 * n + 7;
        l.most = l.sums[warp] > l.most ? l.sums[warp] : l.most;
    }
    int  column_cost[Warps] = {0};
    bool done[P + 1]        = {false};
    for (int i = 0; i <= P; i++)
    {
        int m = 0; /* the most expensive column left: column 0, which is real, costs half as much as others */
        for (int c = 0, most = -1; c <= P; c++)
        {
            const int cost = (c > 0 ? 2 : 1) * (P + 1 - c) * (P + 5 - c);
            m              = !done[c] && cost > most ? c : m;
            most           = !done[c] && cost > most ? cost : most;
        }
        const int warp   = least(column_cost, Warps);
        done[m]          = true;
        l.column_warp[m] = warp;
        column_cost[warp] += (m > 0 ? 2 : 1) * (P + 1 - m) * (P + 5 - m);
    }
    return l;
}

/* ---- rows of one degree ---- */

template <class R>
struct alignas(2 * sizeof(R)) Angle
{
    R c, s;
};

template <class R>
__device__ __forceinline__ Angle<R> angle_of(const R* cs, int m)
{
    return reinterpret_cast<const Angle<R>*>(cs)[m - 1];
}

/* Multiplies degree N by e^{ima}; cs: cos and sin of m a, m = 1.. */
template <int N, class R>
__device__ __forceinline__ void rotate(const R* __restrict__ cs, R (&row)[2 * N + 1])
{
#pragma unroll
    for (int m = 1; m <= N; m++)
    {
        const Angle<R> e  = angle_of(cs, m);
        const R        re = row[rot_re(N, m) - N * N], im = row[rot_im(N, m) - N * N];
        row[rot_re(N, m) - N * N] = re * e.c - im * e.s;
        row[rot_im(N, m) - N * N] = re * e.s + im * e.c;
    }
}

template <int N, int Size, class R>
__device__ __forceinline__ void flip_block(const R* table, int at_in, int at_out, const R* in, R* out)
{
#pragma unroll
    for (int i = 0; i < Size; i++)
    {
        R sum = table[i * Size] * in[at_in];
#pragma unroll
        for (int j = 1; j < Size; j++)
        {
            sum += table[i * Size + j] * in[at_in + j];
        }
        out[at_out + i] = sum;
    }
}

template <int N, class R>
__device__ __forceinline__ void flip(const R* table, const R (&in)[2 * N + 1], R (&out)[2 * N + 1])
{
    constexpr int at    = rot_flip_offset(N);
    constexpr int size0 = rot_block_size(N, 0), size1 = rot_block_size(N, 1), size3 = rot_block_size(N, 3);
    flip_block<N, size0>(table + at, rot_block_in(N, 0), rot_block_out(N, 0), in, out);
    if constexpr (size1 > 0)
    {
        constexpr int at1 = at + size0 * size0;
        flip_block<N, size1>(table + at1, rot_block_in(N, 1), rot_block_out(N, 1), in, out);
        flip_block<N, size1>(table + at1 + size1 * size1, rot_block_in(N, 2), rot_block_out(N, 2), in, out);
    }
    if constexpr (size3 > 0)
    {
        constexpr int at3 = at + size0 * size0 + 2 * size1 * size1;
        flip_block<N, size3>(table + at3, rot_block_in(N, 3), rot_block_out(N, 3), in, out);
    }
}

/* Index of element i of a row of degree N in the order of harmonics.h. */
template <int P, int N>
FMM_HD int place(int i)
{
    for (int m = 0; m <= N; m++)
    {
        if (rot_re(N, m) - N * N == i)
        {
            return harm_re(P, N, m);
        }
        if (m > 0 && rot_im(N, m) - N * N == i)
        {
            return harm_im(P, N, m);
        }
    }
    return 0;
}

template <int P, int N>
struct Places
{
    int at[2 * N + 1];
};

template <int P, int N>
FMM_HD Places<P, N> make_places()
{
    Places<P, N> p{};
    for (int i = 0; i <= 2 * N; i++)
    {
        p.at[i] = place<P, N>(i);
    }
    return p;
}

/* Flips of one kind, and binomials: defined by m2l_rotation_order.cu, which is compiled for one order. */
template <class R, int P>
__device__ __forceinline__ const R* flips(int kind);
template <class R, int P>
__device__ __forceinline__ R binomial(int k, int n);

} // namespace rotation

#endif
