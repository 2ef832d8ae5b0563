/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Orders with kernels of their own, in which loops over degrees are unrolled; the other orders share a kernel with
 * loops. */
#ifndef FMM_CUDA_ORDERS_H
#define FMM_CUDA_ORDERS_H

/* X(p) for each of these orders; c_general stands for any order. */
#define FMM_SPECIAL_ORDERS(X) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)

enum
{
    c_general = -1
};

/*
 * The recurrence of THEORY (1) without divisions: with Upsilon_n^m = g_n^m V_n^m, V_m^m = (x + iy)^m and
 *   V_n^m = z V_(n-1)^m - c_n^m r^2 V_(n-2)^m,
 *   g_m^m = 1/(2^m m!), g_n^m = g_(n-1)^m (2n-1)/((n-m)(n+m)), c_n^m = ((n-1)^2 - m^2)/((2n-1)(2n-3)).
 */
static __host__ __device__ constexpr double monic_factor(int n, int m)
{
    return n < m + 2 ? 0.0 : static_cast<double>((n - 1) * (n - 1) - m * m) / ((2.0 * n - 1) * (2.0 * n - 3));
}

static __host__ __device__ constexpr double monic_scale(int n, int m)
{
    double g = 1;
    for (int k = 1; k <= m; k++)
    {
        g /= 2.0 * k;
    }
    for (int k = m + 1; k <= n; k++)
    {
        g *= (2.0 * k - 1) / (static_cast<double>(k - m) * (k + m));
    }
    return g;
}

/* Both for order P as constants at compile time: a call of the functions in an unrolled loop would be made at run time.
 */
template <int P>
struct Monic
{
    double factor[P + 1][P + 1], scale[P + 1][P + 1]; /* [n][m] */
    constexpr Monic() : factor(), scale()
    {
        for (int n = 0; n <= P; n++)
        {
            for (int m = 0; m <= n; m++)
            {
                factor[n][m] = monic_factor(n, m);
                scale[n][m]  = monic_scale(n, m);
            }
        }
    }
};

#endif
