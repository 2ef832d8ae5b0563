/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * L2P with the gradient of the field, for plans with dipoles: as l2p.cu, with weights for five second derivatives
 * beside those for phi and its first ones; the sixth follows from the trace.
 */
#include <algorithm>

#include "cuda/expansions/l2p_cells.h"
#include "cuda/runtime/chain.h"

enum
{
    c_threads  = 64,        /* of a block */
    c_together = 2,         /* particles of a thread, for which weights are read once */
    c_mostRoom = 40 * 1024, /* shared memory of a block of several cells */
    c_sets     = 9          /* weights of a harmonic */
};

/* Weights of a block's cells, from place cell * weight_stride on: for d_x, d_y, d_z and phi; for xx, xy, xz, yz; and
 * for zz. */
template <class R>
struct Weights
{
    Vec4<R>* first;
    Vec4<R>* second;
    R*       zz;
};

/* T particles of one cell, and the sums of weighted harmonics. */
template <class R, int T>
struct Particles
{
    Vec4<R> v[T], first[T], second[T];
    R       zz[T], r2[T], u[T], w[T]; /* u, w: (x + iy)^m */
};

/* (-1)^n L_n^m for any m, 0 beyond the expansion: phi is the real part of the sum of its conjugate times Upsilon_n^m
 * over all m from -n to n. */
template <class R>
static __device__ inline Vec2<R> coefficient(int p, const R* local, int stride, int n, int m)
{
    const int k = abs(m);
    Vec2<R>   v = {0, 0};
    if (n <= p && k <= n)
    {
        const R sign  = static_cast<R>(n & 1 ? -1 : 1);
        v.x           = sign * local[harm_re(p, n, k) * stride];
        v.y           = k > 0 ? sign * local[harm_im(p, n, k) * stride] : R(0);
        const R other = static_cast<R>(m < 0 && (k & 1) ? -1 : 1); /* of negative m: (-1)^m times the conjugate */
        v.x *= other;
        v.y *= m < 0 ? -other : other;
    }
    return v;
}

/* Weights of Re and Im Upsilon_n^m, which derivatives have from degrees n + 1 and n + 2 (l2p.cu): d_z takes coefficient
 * m of the next degree, d_x half of (m + 1) - (m - 1), d_y -i/2 times (m + 1) + (m - 1). scale: the factor from V to U.
 */
template <class R>
static __device__ inline void
weights_of(int p, const R* local, int stride, int n, int m, R scale, const Weights<R>& w, int re, int im)
{
    const R       s = m > 0 ? 2 * scale : scale, half = R(0.5) * s, quarter = R(0.25) * s;
    const Vec2<R> here = coefficient(p, local, stride, n, m);
    const Vec2<R> up = coefficient(p, local, stride, n + 1, m), right = coefficient(p, local, stride, n + 1, m + 1),
                  left  = coefficient(p, local, stride, n + 1, m - 1);
    const Vec2<R> above = coefficient(p, local, stride, n + 2, m), right1 = coefficient(p, local, stride, n + 2, m + 1),
                  left1  = coefficient(p, local, stride, n + 2, m - 1),
                  right2 = coefficient(p, local, stride, n + 2, m + 2),
                  left2  = coefficient(p, local, stride, n + 2, m - 2);
    w.first[re]          = {half * (right.x - left.x), half * (right.y + left.y), s * up.x, s * here.x};
    /* xx: (m + 2) - 2 m + (m - 2), xy: -i times (m + 2) - (m - 2), a quarter of each */
    w.second[re] = {quarter * (right2.x - 2 * above.x + left2.x), quarter * (right2.y - left2.y),
                    half * (right1.x - left1.x), half * (right1.y + left1.y)};
    w.zz[re]     = s * above.x;
    if (m > 0)
    {
        w.first[im]  = {half * (right.y - left.y), -half * (right.x + left.x), s * up.y, s * here.y};
        w.second[im] = {quarter * (right2.y - 2 * above.y + left2.y), -quarter * (right2.x - left2.x),
                        half * (right1.y - left1.y), -half * (right1.x + left1.x)};
        w.zz[im]     = s * above.y;
    }
}

/* Of the block's cells from local[coef][cell]; each thread has one column of one cell at a time. */
template <class R>
static __device__ void make_weights(int p, int per, const R* local, const Weights<R>& w)
{
    for (int item = static_cast<int>(threadIdx.x); item < (p + 1) * per; item += c_threads)
    {
        const int m = item / per, cell = item % per, from = cell * weight_stride(p);
        R         scale = 1;
        for (int k = 1; k <= m; k++)
        {
            scale *= R(0.5) / static_cast<R>(k);
        }
        for (int n = m; n <= p; n++)
        {
            if (n > m)
            {
                scale *= static_cast<R>(2 * n - 1) / static_cast<R>((n - m) * (n + m));
            }
            weights_of(p, local + cell, per, n, m, scale, w, from + harm_re(p, n, m), from + harm_im(p, n, m));
        }
    }
}

/* Adds Re and Im of a harmonic, `at` and `im` their weights. */
template <class R, int T>
static __device__ inline void
add_harmonic(const Weights<R>& w, int at, int im, bool has_im, const R* u, const R* v, Particles<R, T>& b)
{
    const Vec4<R> first = w.first[at], second = w.second[at];
    const R       zz = w.zz[at];
#pragma unroll
    for (int t = 0; t < T; t++)
    {
        add_weighted(first, u[t], &b.first[t]);
        add_weighted(second, u[t], &b.second[t]);
        b.zz[t] += zz * u[t];
    }
    if (has_im)
    {
        const Vec4<R> first_im = w.first[im], second_im = w.second[im];
        const R       zz_im = w.zz[im];
#pragma unroll
        for (int t = 0; t < T; t++)
        {
            add_weighted(first_im, v[t], &b.first[t]);
            add_weighted(second_im, v[t], &b.second[t]);
            b.zz[t] += zz_im * v[t];
        }
    }
}

/* Column m: degrees m .. p by the recurrence of orders.h; factor: monic_factor of the column. */
template <class R, int T>
static __device__ inline void
add_column(const Weights<R>& w, int from, int length, int m, const R* factor, Particles<R, T>& b)
{
    R u[T], v[T], u_below[T], v_below[T];
#pragma unroll
    for (int t = 0; t < T; t++)
    {
        u[t]       = b.u[t];
        v[t]       = b.w[t];
        u_below[t] = v_below[t] = 0;
    }
#pragma unroll 2
    for (int i = 0; i < length; i++)
    {
        if (i > 0)
        {
            const R f = factor[i];
#pragma unroll
            for (int t = 0; t < T; t++)
            {
                const R g = f * b.r2[t], z = b.v[t].z;
                const R u_next = z * u[t] - g * u_below[t], v_next = z * v[t] - g * v_below[t];
                u_below[t] = u[t];
                v_below[t] = v[t];
                u[t]       = u_next;
                v[t]       = v_next;
            }
        }
        add_harmonic<R, T>(w, from + i, from + length + i, m > 0, u, v, b);
    }
}

/* Sums of all harmonics. from: place of the cell's weights. */
template <class R, int T>
static __device__ inline void evaluate(int p, const Weights<R>& w, int from, const R* factor, Particles<R, T>& b)
{
    for (int m = 0; m <= p; m++)
    {
        const int length = p + 1 - m;
        add_column<R, T>(w, from, length, m, factor, b);
        from += m > 0 ? 2 * length : length;
        factor += length;
#pragma unroll
        for (int t = 0; t < T; t++)
        {
            const R next = b.u[t] * b.v[t].x - b.w[t] * b.v[t].y;
            b.w[t]       = b.u[t] * b.v[t].y + b.w[t] * b.v[t].x;
            b.u[t]       = next;
        }
    }
}

/* Gradient of the field with the background, whose part is the same everywhere. */
template <class R>
static __device__ inline Symmetric<R> gradient_of(const L2pArgs<R>& a, const Vec4<R>& second, R zz)
{
    const R cq2 = static_cast<R>(2 * a.background * *a.total_charge);
    const R xx = -cq2 - second.x, last = -cq2 - zz;
    return {{xx, -3 * cq2 - xx - last, last, -second.y, -second.z, -second.w}};
}

template <class R>
__global__ void __launch_bounds__(c_threads) l2p_gradient(L2pArgs<R> a, Symmetric<R>* gradient)
{
    extern __shared__ char shared[];
    __shared__ BlockItems  items;
    const int              p = a.p, size = harm_size(p), per = a.cells_per_block, wide = weight_stride(p);
    const int              first = a.begin + static_cast<int>(blockIdx.x) * per, cells = min(per, a.end - first);
    Vec4<R>*               room  = reinterpret_cast<Vec4<R>*>(shared);
    const Weights<R>       w     = {room, room + wide * per, reinterpret_cast<R*>(room + 2 * wide * per)};
    R *                    local = w.zz + wide * per, *factor = local + size * per;
    if (threadIdx.x < 32)
    {
        count_items(a.leaves, a.cell_start, first, cells, c_together, &items);
    }
    make_factors<c_threads>(p, factor);
    wait_for_previous(); /* the arrays read above are older */
    for (int i = static_cast<int>(threadIdx.x); i < size * per; i += c_threads)
    {
        const int coef = i / per, cell = i % per;
        local[i] = cell < cells ? a.field[static_cast<size_t>(coef) * a.leaves.stride + first + cell] : R(0);
    }
    __syncthreads();
    make_weights(p, per, local, w);
    __syncthreads();
    for (int item = static_cast<int>(threadIdx.x); item < items.item[32]; item += c_threads)
    {
        const int                cell = cell_of_item(items, item), num = items.item[cell + 1] - items.item[cell];
        const int                s = items.begin[cell] + item - items.item[cell], end = items.end[cell];
        Particles<R, c_together> b;
#pragma unroll
        for (int t = 0; t < c_together; t++)
        {
            b.v[t]     = a.xq[s + t * num < end ? s + t * num : s];
            b.first[t] = b.second[t] = {0, 0, 0, 0};
            b.r2[t]                  = b.v[t].x * b.v[t].x + b.v[t].y * b.v[t].y + b.v[t].z * b.v[t].z;
            b.u[t]                   = 1;
            b.w[t] = b.zz[t] = 0;
        }
        evaluate<R, c_together>(p, w, cell * wide, factor, b);
#pragma unroll
        for (int t = 0; t < c_together; t++)
        {
            if (s + t * num < end)
            {
                a.out[s + t * num]    = finish(a, first + cell, b.v[t], b.first[t]);
                gradient[s + t * num] = gradient_of(a, b.second[t], b.zz[t]);
            }
        }
    }
}

template <class R>
static size_t room_of(int p, int cells)
{
    const size_t size = static_cast<size_t>(harm_size(p)), wide = static_cast<size_t>(weight_stride(p));
    return (static_cast<size_t>(cells) * (c_sets * wide + size) + size) * sizeof(R);
}

template <class R>
static gmxfmm_status launch(gmxfmm_plan* plan, const FarRange& far, cudaStream_t stream)
{
    const fmm_device* d = plan->device;
    L2pArgs<R>        a = fmm_cuda_l2p_args<R>(plan, far);
    if (a.end <= a.begin)
    {
        return GMXFMM_OK;
    }
    /* as many cells as threads have particles, but for remainders */
    const double items = 0.5 + static_cast<double>(targets_of(d)->n) / c_together / std::max(a.leaves.num, 1);
    int          cells = std::max(1, std::min(32, static_cast<int>(c_threads / items)));
    while (cells > 1 && room_of<R>(a.p, cells) > c_mostRoom)
    {
        cells--;
    }
    a.cells_per_block = cells;
    FMM_CUDA(plan, (allow_shared(far.allowed, l2p_gradient<R>)));
    FMM_CUDA(plan, launch_next(far.has_chains, l2p_gradient<R>, blocks_for(a.end - a.begin, cells), c_threads,
                               room_of<R>(a.p, cells), stream, a, d->output.far_gradient.as<Symmetric<R>>()));
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_l2p_gradient(gmxfmm_plan* plan, const FarRange& far, cudaStream_t stream)
{
    return is_double(plan) ? launch<double>(plan, far, stream) : launch<float>(plan, far, stream);
}
