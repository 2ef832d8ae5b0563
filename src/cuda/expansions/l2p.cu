/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * L2P, THEORY (6). Each block has a few cells. From their local expansions it computes weights, by which Re and Im of
 * each harmonic are multiplied: one for phi and one for each derivative. Then each thread evaluates one or two
 * particles.
 */
#include "cuda/expansions/l2p_cells.h"
#include "cuda/runtime/chain.h"

enum
{
    c_threads   = 64,    /* of a block, for any order */
    c_warps     = 4,     /* of a block, for orders with kernels of their own */
    c_cells     = 32,    /* of a block of these kernels */
    c_fewCells  = 20000, /* below this number a block has c_cells / 2, to have enough blocks */
    c_manyWarps = 8,     /* of a block where there are at most */
    c_fewBlocks = 3      /* blocks of c_cells / 4 for a multiprocessor */
};

/* s_n^m L_n^m, with s = (-1)^n (2 - delta_m0), 0 unless 0 <= m <= n <= p; twice: the factor is 2 for m = 0, too. */
template <class R>
static __device__ inline Vec2<R> signed_local(int p, const R* local, int stride, int n, int m, bool twice)
{
    Vec2<R> v = {0, 0};
    if (m >= 0 && m <= n && n <= p)
    {
        const R s = static_cast<R>((n & 1 ? -1 : 1) * (m > 0 || twice ? 2 : 1));
        v.x       = s * local[harm_re(p, n, m) * stride];
        v.y       = m > 0 ? s * local[harm_im(p, n, m) * stride] : R(0);
    }
    return v;
}

/*
 * Weights of Re and Im Upsilon_n^m in phi and its derivatives, from d_z U_n^m = U_(n-1)^m, d_x U_n^m = (U_(n-1)^(m-1) -
 * U_(n-1)^(m+1))/2, d_y U_n^m = i (U_(n-1)^(m-1) + U_(n-1)^(m+1))/2: the weights of U_n^m come from L_(n+1)^(m+1),
 * L_(n+1)^(m-1) and L_(n+1)^m. x, y, z, w: d_x, d_y, d_z, phi. scale: the factor from V to U.
 */
template <class R>
static __device__ inline void
weights_of(int p, const R* local, int stride, int n, int m, R scale, Vec4<R>* re, Vec4<R>* im)
{
    const R       h     = R(0.5) * scale;
    const Vec2<R> here  = signed_local(p, local, stride, n, m, false);
    const Vec2<R> up    = signed_local(p, local, stride, n + 1, m, false);
    const Vec2<R> right = signed_local(p, local, stride, n + 1, m + 1, false);
    const Vec2<R> left  = signed_local(p, local, stride, n + 1, m - 1, true);
    *re                 = {h * (right.x - left.x), h * (right.y + left.y), scale * up.x, scale * here.x};
    *im                 = {h * (right.y - left.y), -h * (right.x + left.x), scale * up.y, scale * here.y};
}

/* Computes weights[cell][coef] of the block's cells from local[coef][cell]; each thread has one column of one cell at a
 * time. */
template <class R>
static __device__ void make_weights(int p, int per, const R* local, Vec4<R>* weights)
{
    for (int item = static_cast<int>(threadIdx.x); item < (p + 1) * per; item += c_threads)
    {
        const int m = item / per, cell = item % per;
        Vec4<R>*  out   = weights + cell * weight_stride(p) + harm_re(p, m, m);
        R         scale = 1;
        for (int k = 1; k <= m; k++)
        {
            scale *= R(0.5) / static_cast<R>(k);
        }
        for (int n = m; n <= p; n++, out++)
        {
            Vec4<R> re, im;
            if (n > m)
            {
                scale *= static_cast<R>(2 * n - 1) / static_cast<R>((n - m) * (n + m));
            }
            weights_of(p, local + cell, per, n, m, scale, &re, &im);
            out[0] = re;
            if (m > 0)
            {
                out[p + 1 - m] = im;
            }
        }
    }
}

/* Derivatives and potential of one particle, by the recurrence of orders.h; any order. factor: column after column of
 * monic_factor. */
template <class R>
static __device__ Vec4<R> evaluate(int p, const Vec4<R>& v, const Vec4<R>* weights, const R* factor)
{
    const R r2  = v.x * v.x + v.y * v.y + v.z * v.z;
    Vec4<R> sum = {0, 0, 0, 0};
    R       u0 = 1, w0 = 0;
    for (int m = 0; m <= p; m++)
    {
        const int length = p + 1 - m;
        R         u = u0, w = w0, u_below = 0, w_below = 0;
        for (int i = 0; i < length; i++)
        {
            if (i > 0)
            {
                const R f = factor[i] * r2, u_next = v.z * u - f * u_below, w_next = v.z * w - f * w_below;
                u_below = u;
                w_below = w;
                u       = u_next;
                w       = w_next;
            }
            add_weighted(weights[i], u, &sum);
            if (m > 0)
            {
                add_weighted(weights[length + i], w, &sum);
            }
        }
        weights += m > 0 ? 2 * length : length;
        factor += length;
        const R next = u0 * v.x - w0 * v.y;
        w0           = u0 * v.y + w0 * v.x;
        u0           = next;
    }
    return sum;
}

/* T particles of one cell that are evaluated together, and (x + iy)^m of each. */
template <class R, int T>
struct Batch
{
    Vec4<R> v[T], sum[T];
    R       r2[T], u[T], w[T];
};

/* Adds a weighted harmonic of one degree and order; those of degree P do not contribute to the derivatives. */
template <bool LAST, class R>
static __device__ inline void add_degree(const Vec4<R>& w, R u, Vec4<R>* sum)
{
    if (LAST)
    {
        sum->w += w.w * u;
    }
    else
    {
        add_weighted(w, u, sum);
    }
}

/* Adds columns M .. P to derivatives and potentials. */
template <class R, int P, int M, int T>
static __device__ inline void evaluate_columns(const Vec4<R>* weights, Batch<R, T>& b)
{
    constexpr Monic<P> monic;
    R                  u[T], w[T], u_below[T], w_below[T];
#pragma unroll
    for (int n = M; n <= P; n++)
    {
        const Vec4<R> re = weights[harm_re(P, n, M)], im = weights[M > 0 ? harm_im(P, n, M) : harm_re(P, n, M)];
#pragma unroll
        for (int t = 0; t < T; t++)
        {
            if (n == M)
            {
                u[t]       = b.u[t];
                w[t]       = b.w[t];
                u_below[t] = w_below[t] = 0;
            }
            else if (n == M + 1) /* the factor is zero */
            {
                u_below[t] = u[t];
                w_below[t] = w[t];
                u[t] *= b.v[t].z;
                w[t] *= b.v[t].z;
            }
            else
            {
                const R f      = static_cast<R>(monic.factor[n][M]) * b.r2[t];
                const R u_next = b.v[t].z * u[t] - f * u_below[t], w_next = b.v[t].z * w[t] - f * w_below[t];
                u_below[t] = u[t];
                w_below[t] = w[t];
                u[t]       = u_next;
                w[t]       = w_next;
            }
            n < P ? add_degree<false>(re, u[t], &b.sum[t]) : add_degree<true>(re, u[t], &b.sum[t]);
            if (M > 0)
            {
                n < P ? add_degree<false>(im, w[t], &b.sum[t]) : add_degree<true>(im, w[t], &b.sum[t]);
            }
        }
    }
    if constexpr (M < P)
    {
#pragma unroll
        for (int t = 0; t < T; t++)
        {
            const R next = b.u[t] * b.v[t].x - b.w[t] * b.v[t].y;
            b.w[t]       = b.u[t] * b.v[t].y + b.w[t] * b.v[t].x;
            b.u[t]       = next;
        }
        evaluate_columns<R, P, M + 1, T>(weights, b);
    }
}

/* Evaluates the block's particles, one in a thread: any order. */
template <class R>
static __device__ inline void
evaluate_particles(const L2pArgs<R>& a, int first, const BlockItems& items, const Vec4<R>* weights, const R* factor)
{
    for (int item = static_cast<int>(threadIdx.x); item < items.item[32]; item += c_threads)
    {
        const int     cell = cell_of_item(items, item), s = items.begin[cell] + item - items.item[cell];
        const Vec4<R> v = a.xq[s];
        a.out[s]        = finish(a, first + cell, v, evaluate(a.p, v, weights + cell * weight_stride(a.p), factor));
    }
}

/* Evaluates the block's particles, T of one cell in a thread, so that each weight is read once for all of them. They
 * are as far apart as there are threads for the cell: neighbouring threads have neighbours, and store them in long
 * runs, which another device's memory wants. */
template <class R, int P, int T>
static __device__ inline void
evaluate_together(const L2pArgs<R>& a, int first, const BlockItems& items, int threads, const Vec4<R>* weights)
{
    for (int item = static_cast<int>(threadIdx.x); item < items.item[32]; item += threads)
    {
        const int   cell = cell_of_item(items, item), num = items.item[cell + 1] - items.item[cell];
        const int   s = items.begin[cell] + item - items.item[cell], end = items.end[cell];
        Batch<R, T> b;
#pragma unroll
        for (int t = 0; t < T; t++)
        {
            b.v[t]   = a.xq[s + t * num < end ? s + t * num : s];
            b.sum[t] = {0, 0, 0, 0};
            b.r2[t]  = b.v[t].x * b.v[t].x + b.v[t].y * b.v[t].y + b.v[t].z * b.v[t].z;
            b.u[t]   = 1;
            b.w[t]   = 0;
        }
        evaluate_columns<R, P, 0>(weights + cell * weight_stride(P), b);
#pragma unroll
        for (int t = 0; t < T; t++)
        {
            if (s + t * num < end)
            {
                a.out[s + t * num] = finish(a, first + cell, b.v[t], b.sum[t]);
            }
        }
    }
}

template <class R>
__global__ void __launch_bounds__(c_threads) l2p_general(L2pArgs<R> a)
{
    extern __shared__ char shared[];
    __shared__ BlockItems  items;
    const int              p = a.p, size = harm_size(p), per = a.cells_per_block;
    const int              first = a.begin + static_cast<int>(blockIdx.x) * per, cells = min(per, a.end - first);
    Vec4<R>*               weights = reinterpret_cast<Vec4<R>*>(shared);
    R*                     local   = reinterpret_cast<R*>(weights + weight_stride(p) * per);
    R*                     factor  = local + size * per;
    if (threadIdx.x < 32)
    {
        count_items(a.leaves, a.cell_start, first, cells, 1, &items);
    }
    make_factors<c_threads>(p, factor);
    wait_for_previous(); /* the arrays read above are older */
    for (int i = static_cast<int>(threadIdx.x); i < size * per; i += c_threads)
    {
        const int coef = i / per, cell = i % per;
        local[i] = cell < cells ? a.field[static_cast<size_t>(coef) * a.leaves.stride + first + cell] : R(0);
    }
    __syncthreads();
    make_weights(p, per, local, weights);
    __syncthreads();
    evaluate_particles(a, first, items, weights, factor);
}

/* Column M of the weights of one lane's cell from its local expansion local[coef * stride]; those of degree P are for
 * the potential only. */
template <class R, int P, int M>
static __device__ inline void weight_column(const R* local, unsigned stride, Vec4<R>* weights)
{
    constexpr Monic<P> monic;
    const auto         at = [=](int coef) { return local[static_cast<size_t>(static_cast<unsigned>(coef)) * stride]; };
#pragma unroll
    for (int n = M; n < P; n++)
    {
        const R sign = static_cast<R>(n & 1 ? -1 : 1), side = -sign * static_cast<R>(monic.scale[n][M]);
        const R s    = sign * static_cast<R>((M > 0 ? 2 : 1) * monic.scale[n][M]);
        const R up_x = at(harm_re(P, n + 1, M)), up_y = M > 0 ? at(harm_im(P, n + 1, M)) : R(0);
        const R right_x = at(harm_re(P, n + 1, M + 1)), right_y = at(harm_im(P, n + 1, M + 1)); /* of orders M +- 1 */
        const R left_x            = M > 0 ? at(harm_re(P, n + 1, M > 0 ? M - 1 : 0)) : R(0);
        const R left_y            = M > 1 ? at(harm_im(P, n + 1, M > 1 ? M - 1 : 1)) : R(0);
        weights[harm_re(P, n, M)] = {side * (right_x - left_x), side * (right_y + left_y), -s * up_x,
                                     s * at(harm_re(P, n, M))};
        if (M > 0)
        {
            weights[harm_im(P, n, M)] = {side * (right_y - left_y), -side * (right_x + left_x), -s * up_y,
                                         s * at(harm_im(P, n, M))};
        }
    }
    const R s                   = static_cast<R>((P & 1 ? -1 : 1) * (M > 0 ? 2 : 1) * monic.scale[P][M]);
    weights[harm_re(P, P, M)].w = s * at(harm_re(P, P, M));
    if (M > 0)
    {
        weights[harm_im(P, P, M)].w = s * at(harm_im(P, P, M));
    }
}

/* Computes the columns of the calling warp, which has long and short ones. */
template <class R, int P, int M, int WARPS>
static __device__ inline void weight_columns(int warp, const R* local, unsigned stride, Vec4<R>* weights)
{
    constexpr int round = M % (2 * WARPS), owner = round < WARPS ? round : 2 * WARPS - 1 - round;
    if (warp == owner)
    {
        weight_column<R, P, M>(local, stride, weights);
    }
    if constexpr (M < P)
    {
        weight_columns<R, P, M + 1, WARPS>(warp, local, stride, weights);
    }
}

/* Orders with kernels of their own. While weights are computed, each lane has one of at most 32 cells. T: particles of
 * a thread. */
template <class R, int P, int WARPS, int T>
__global__ void __launch_bounds__(32 * WARPS) l2p(L2pArgs<R> a)
{
    extern __shared__ char shared[];
    __shared__ BlockItems  items;
    const int              lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int              first   = a.begin + static_cast<int>(blockIdx.x) * a.cells_per_block;
    const int              cells   = min(a.cells_per_block, a.end - first);
    Vec4<R>*               weights = reinterpret_cast<Vec4<R>*>(shared);
    if (warp == 0)
    {
        count_items(a.leaves, a.cell_start, first, cells, T, &items);
    }
    wait_for_previous(); /* the arrays read above are older */
    if (lane < cells)
    {
        weight_columns<R, P, 0, WARPS>(warp, a.field + first + lane, static_cast<unsigned>(a.leaves.stride),
                                       weights + lane * weight_stride(P));
    }
    __syncthreads();
    evaluate_together<R, P, T>(a, first, items, 32 * WARPS, weights);
}

template <class R>
static gmxfmm_status launch_general(gmxfmm_plan* plan, const FarRange& far, L2pArgs<R> a, cudaStream_t stream)
{
    const size_t size = static_cast<size_t>(harm_size(a.p)), wide = static_cast<size_t>(weight_stride(a.p));
    int          per = 16;
    while (per > 1 && static_cast<size_t>(per) * size * 5 * sizeof(R) > 40 * 1024)
    {
        per /= 2;
    }
    a.cells_per_block   = per;
    const size_t shared = static_cast<size_t>(per) * (4 * wide + size) * sizeof(R) + size * sizeof(R);
    FMM_CUDA(plan, (allow_shared(far.allowed, l2p_general<R>)));
    FMM_CUDA(plan, launch_next(far.has_chains, l2p_general<R>, blocks_for(a.end - a.begin, per), c_threads, shared,
                               stream, a));
    return GMXFMM_OK;
}

template <class R, int P>
static size_t weights_bytes(int cells)
{
    return static_cast<size_t>(cells) * static_cast<size_t>(weight_stride(P)) * sizeof(Vec4<R>);
}

template <class R, int P, int WARPS, int T>
static gmxfmm_status launch_blocks(gmxfmm_plan* plan, const FarRange& far, L2pArgs<R> a, int cells, cudaStream_t stream)
{
    const size_t shared = weights_bytes<R, P>(cells);
    a.cells_per_block   = cells;
    FMM_CUDA(plan, (allow_shared(far.allowed, l2p<R, P, WARPS, T>)));
    FMM_CUDA(plan, (launch_next(far.has_chains, l2p<R, P, WARPS, T>, blocks_for(a.end - a.begin, cells), 32 * WARPS,
                                shared, stream, a)));
    return GMXFMM_OK;
}

template <class R, int P>
static gmxfmm_status launch(gmxfmm_plan* plan, const FarRange& far, const L2pArgs<R>& a, cudaStream_t stream)
{
    /* Few cells: a thread waits for its instructions and numbers, so that more threads with less to do are faster. All
     * parts of the far field have the kernel of the whole. */
    if (blocks_for(a.leaves.num, c_cells / 4) <= c_fewBlocks * plan->device->limits.processors)
    {
        return launch_blocks<R, P, c_manyWarps, 1>(plan, far, a, c_cells / 4, stream);
    }
    int cells = a.leaves.num < c_fewCells ? c_cells / 2 : c_cells;
    while (cells > 1 && weights_bytes<R, P>(cells) > static_cast<size_t>(plan->device->limits.max_shared))
    {
        cells /= 2;
    }
    return launch_blocks<R, P, c_warps, 2>(plan, far, a, cells, stream);
}

template <class R>
static gmxfmm_status dispatch(gmxfmm_plan* plan, const FarRange& far, cudaStream_t stream)
{
    const L2pArgs<R> a = fmm_cuda_l2p_args<R>(plan, far);
    if (a.end <= a.begin)
    {
        return GMXFMM_OK;
    }
    switch (plan->far.order)
    {
#define FMM_LAUNCH(P)                                                                                                  \
    case P:                                                                                                            \
        return launch<R, P>(plan, far, a, stream);
        FMM_SPECIAL_ORDERS(FMM_LAUNCH)
#undef FMM_LAUNCH
    default:
        return launch_general<R>(plan, far, a, stream);
    }
}

gmxfmm_status fmm_cuda_l2p(gmxfmm_plan* plan, bool gradient, cudaEvent_t ready)
{
    for (int k = 0; k < num_devices(plan->device); k++)
    {
        FarRange           far    = far_range(plan, k);
        const cudaStream_t stream = plan->device[k].schedule.far;
        DeviceScope        scope(plan->device[k].id);
        if (!convolves(plan, k))
        {
            continue;
        }
        if (ready != NULL)
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(stream, ready, 0));
            far.has_chains = false;
        }
        FMM_TRY(gradient          ? fmm_cuda_l2p_gradient(plan, far, stream)
                : is_double(plan) ? dispatch<double>(plan, far, stream)
                                  : dispatch<float>(plan, far, stream));
    }
    return GMXFMM_OK;
}
