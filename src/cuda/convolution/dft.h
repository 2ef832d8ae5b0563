/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Short discrete Fourier transforms in registers, by their definition and the symmetry of the roots of unity. */
#ifndef FMM_CUDA_DFT_H
#define FMM_CUDA_DFT_H

#include "cuda/state.h"

/* sin(2 pi k / n) by its series, exact at multiples of pi/2. */
static constexpr double root_sine(int k, int n)
{
    k           = (k % n + n) % n;
    double sign = 1;
    if (2 * k > n)
    {
        k    = n - k;
        sign = -1;
    }
    /* by sin(pi - x) = sin(x) the angle becomes 2 pi a / b, at most pi/2 */
    const int a = 4 * k > n ? n - 2 * k : 2 * k, b = 2 * n;
    if (4 * a == b)
    {
        return sign;
    }
    const double x    = 2 * FMM_PI * a / b;
    double       term = x, sum = 0;
    for (int i = 1; i < 40; i += 2)
    {
        sum += term;
        term *= -x * x / ((i + 1.0) * (i + 2.0));
    }
    return sign * sum;
}

static constexpr double root_cosine(int k, int n)
{
    return root_sine(4 * k + n, 4 * n);
}

/* cos and sin of 2 pi k / N as constants that the compiler sees. */
template <int N>
struct Roots
{
    double c[N], s[N];
    constexpr Roots() : c(), s()
    {
        for (int k = 0; k < N; k++)
        {
            c[k] = root_cosine(k, N);
            s[k] = root_sine(k, N);
        }
    }
};

template <class R>
static __device__ inline Vec2<R> times(const Vec2<R>& a, R c, R s)
{
    return {a.x * c - a.y * s, a.x * s + a.y * c};
}

/* v_k = sum_j v_j exp(-+ 2 pi i j k / N), the upper sign FORWARD. */
template <int N, bool FORWARD, class R>
static __device__ inline void dft(Vec2<R>* v)
{
    if constexpr (N > 1 && N % 2 == 0)
    {
        constexpr int      half = N / 2;
        constexpr Roots<N> w;
        Vec2<R>            even[half], odd[half];
#pragma unroll
        for (int k = 0; k < half; k++)
        {
            even[k] = v[2 * k];
            odd[k]  = v[2 * k + 1];
        }
        dft<half, FORWARD>(even);
        dft<half, FORWARD>(odd);
#pragma unroll
        for (int k = 0; k < half; k++)
        {
            Vec2<R> t = odd[k];
            if (4 * k == N)
            {
                t = FORWARD ? Vec2<R>{t.y, -t.x} : Vec2<R>{-t.y, t.x};
            }
            else if (k > 0)
            {
                t = times(t, static_cast<R>(w.c[k]), static_cast<R>(FORWARD ? -w.s[k] : w.s[k]));
            }
            v[k]        = {even[k].x + t.x, even[k].y + t.y};
            v[k + half] = {even[k].x - t.x, even[k].y - t.y};
        }
    }
    else if constexpr (N > 1)
    {
        constexpr int      half = (N - 1) / 2;
        constexpr Roots<N> w;
        Vec2<R>            sum[half], difference[half];
        const Vec2<R>      first = v[0];
#pragma unroll
        for (int j = 1; j <= half; j++)
        {
            sum[j - 1]        = {v[j].x + v[N - j].x, v[j].y + v[N - j].y};
            difference[j - 1] = {v[j].x - v[N - j].x, v[j].y - v[N - j].y};
            v[0].x += sum[j - 1].x;
            v[0].y += sum[j - 1].y;
        }
#pragma unroll
        for (int k = 1; k <= half; k++)
        {
            Vec2<R> a = first, b = {0, 0};
#pragma unroll
            for (int j = 1; j <= half; j++)
            {
                const R c = static_cast<R>(w.c[j * k % N]),
                        s = static_cast<R>(FORWARD ? w.s[j * k % N] : -w.s[j * k % N]);
                a.x += c * sum[j - 1].x;
                a.y += c * sum[j - 1].y;
                b.x += s * difference[j - 1].y;
                b.y -= s * difference[j - 1].x;
            }
            v[k]     = {a.x + b.x, a.y + b.y};
            v[N - k] = {a.x - b.x, a.y - b.y};
        }
    }
}

/* One transform of length `radix` in a thread: load(j), then store(k, value). */
template <int N, bool FORWARD, class R, class Load, class Store>
static __device__ inline void dft_task(Load load, Store store)
{
    Vec2<R> v[N];
#pragma unroll
    for (int j = 0; j < N; j++)
    {
        v[j] = load(j);
    }
    dft<N, FORWARD>(v);
#pragma unroll
    for (int k = 0; k < N; k++)
    {
        store(k, v[k]);
    }
}

/* for (task = thread; task < tasks; task += threads), each prepared by make(task), which returns a load and a store. */
template <bool FORWARD, class R, class Make>
static __device__ inline void dft_tasks(int radix, int tasks, int threads, int thread, Make make)
{
#define FMM_RADIX(N)                                                                                                   \
case N:                                                                                                                \
    for (int task = thread; task < tasks; task += threads)                                                             \
    {                                                                                                                  \
        const auto io = make(task);                                                                                    \
        dft_task<N, FORWARD, R>([&](int j) { return io.load(j); }, [&](int k, const Vec2<R>& v) { io.store(k, v); });  \
    }                                                                                                                  \
    break;
    switch (radix)
    {
        FMM_RADIX(1)
        FMM_RADIX(2)
        FMM_RADIX(3)
        FMM_RADIX(4)
        FMM_RADIX(5)
        FMM_RADIX(6)
        FMM_RADIX(7)
        FMM_RADIX(8)
        FMM_RADIX(9)
        FMM_RADIX(10)
    default:
        break;
    }
#undef FMM_RADIX
}

#endif
