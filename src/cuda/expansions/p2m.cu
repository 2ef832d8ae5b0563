/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * P2M, THEORY (4). Each thread has some columns (fixed m, degrees m..p) of one cell, and lanes have neighbouring cells,
 * so that coefficients stay in registers and writes are contiguous. The moments for the background are computed with
 * the first columns.
 */
#include "cuda/expansions/expansions.h"
#include "cuda/runtime/chain.h"
#include "cuda/expansions/orders.h"
#include "cuda/runtime/sums.h"

#include "fmm/math/harmonics.h"

enum
{
    c_threads    = 128,
    c_group      = 3,     /* columns of a thread */
    c_fewCells   = 20000, /* below this number a warp has one column, to have enough of them */
    c_mostStaged = 1024   /* particles that its block fetches to shared memory, at most */
};

template <class R>
struct P2mArgs
{
    Geometry       g;
    Leaves         leaves;
    int            p, sums; /* sums: whether the dipole and sum q r^2 are wanted */
    const int*     cell_start;
    const Vec4<R>* xq;
    R*             field;
    double*        partial; /* blocks x 4 */
    StepResults*   results;
};

/* Adds up the dipole and sum q r^2 of all cells; the last block writes them. */
static __device__ void add_block_moments(double* partial, StepResults* results, const double* moment)
{
    for (int k = 0; k < 4; k++)
    {
        const double sum = block_sum<c_threads>(moment[k]);
        if (threadIdx.x == 0)
        {
            partial[4 * blockIdx.x + k] = sum;
        }
    }
    if (is_last_block(&results->p2m_done))
    {
        const int column = static_cast<int>(threadIdx.x % 4);
        double    part   = 0;
        for (int row = static_cast<int>(threadIdx.x / 4); row < static_cast<int>(gridDim.x); row += c_threads / 4)
        {
            part += __ldcg(partial + 4 * row + column);
        }
        for (int k = 0; k < 4; k++)
        {
            const double sum = block_sum<c_threads>(column == k ? part : 0);
            if (threadIdx.x == 0)
            {
                results->moments[k] = sum;
            }
        }
        if (threadIdx.x == 0)
        {
            results->moments[4] = results->moments[5] = 0;
            results->p2m_done                         = 0;
        }
    }
}

template <class R>
static __device__ inline int2 particles_of(const P2mArgs<R>& a, int leaf)
{
    const int cell = a.leaves.cell != NULL ? a.leaves.cell[leaf] : leaf;
    return make_int2(a.cell_start[cell], a.cell_start[cell + 1]);
}

/* Shifts the moments of a leaf from its centre to that of its root, on an octree. */
template <class R>
static __device__ inline void shift_moments(const P2mArgs<R>& a, int leaf, double charge, double* moment)
{
    if (a.leaves.edge > 1)
    {
        double s[3];
        root_offset(a.g, a.leaves.edge, a.leaves.cell[leaf], s);
        for (int d = 0; d < 3; d++)
        {
            moment[3] += s[d] * (2 * moment[d] + charge * s[d]);
            moment[d] += charge * s[d];
        }
    }
}

/* Columns M .. M + GROUP - 1 of order P of one cell, whose particles are range.x .. range.y - 1 of xq. */
template <class R, int P, int M, int GROUP>
static __device__ inline void
columns(const P2mArgs<R>& a, const Vec4<R>* xq, const int2& range, int cell, double* moment)
{
    constexpr Monic<P> monic;
    constexpr int      last = M + GROUP - 1 < P ? M + GROUP - 1 : P;
    R                  re[GROUP][P + 1 - M], im[GROUP][P + 1 - M], dipole[3] = {0, 0, 0}, trace = 0;
#pragma unroll
    for (int c = 0; c < GROUP; c++)
    {
#pragma unroll
        for (int i = 0; i < P + 1 - M; i++)
        {
            re[c][i] = im[c][i] = 0;
        }
    }
    Vec4<R> next = xq[range.x]; /* the array has room for one more particle */
    for (int s = range.x; s < range.y; s++)
    {
        const Vec4<R> v = next;
        next            = xq[s + 1];
        const R r2      = v.x * v.x + v.y * v.y + v.z * v.z;
        R       u0 = v.w, w0 = 0; /* conj Upsilon(x, y, z) = Upsilon(x, -y, z) */
        if (M == 0)
        {
            dipole[0] += v.w * v.x;
            dipole[1] += v.w * v.y;
            dipole[2] += v.w * v.z;
            trace += v.w * r2;
        }
#pragma unroll
        for (int m = 0; m <= last; m++)
        {
            if (m > 0)
            {
                const R t = u0 * v.x + w0 * v.y;
                w0        = w0 * v.x - u0 * v.y;
                u0        = t;
            }
            if (m >= M)
            {
                R u = u0, w = w0, u_below = 0, w_below = 0;
#pragma unroll
                for (int n = m; n <= P; n++)
                {
                    if (n == m + 1) /* the factor is zero */
                    {
                        u_below = u;
                        w_below = w;
                        u *= v.z;
                        w *= v.z;
                    }
                    else if (n > m)
                    {
                        const R t      = static_cast<R>(monic.factor[n][m]) * r2;
                        const R u_next = v.z * u - t * u_below, w_next = v.z * w - t * w_below;
                        u_below = u;
                        w_below = w;
                        u       = u_next;
                        w       = w_next;
                    }
                    re[m - M][n - m] += u;
                    im[m - M][n - m] += w;
                }
            }
        }
    }
    const size_t stride = a.leaves.stride;
    R*           out    = a.field + cell;
#pragma unroll
    for (int m = M; m <= last; m++)
    {
#pragma unroll
        for (int n = m; n <= P; n++)
        {
            const R g                                           = static_cast<R>(monic.scale[n][m]);
            out[static_cast<size_t>(harm_re(P, n, m)) * stride] = g * re[m - M][n - m];
            if (m > 0)
            {
                out[static_cast<size_t>(harm_im(P, n, m)) * stride] = g * im[m - M][n - m];
            }
        }
    }
    for (int d = 0; d < 3; d++)
    {
        moment[d] = static_cast<double>(dipole[d]);
    }
    moment[3] = static_cast<double>(trace);
    if (M == 0 && a.sums)
    {
        shift_moments(a, cell, static_cast<double>(re[0][0]), moment);
    }
}

/* The group of columns with number `number`. */
template <class R, int P, int M, int GROUP>
static __device__ inline void
group(const P2mArgs<R>& a, int number, const Vec4<R>* xq, const int2& range, int cell, double* moment)
{
    if (number == M / GROUP)
    {
        columns<R, P, M, GROUP>(a, xq, range, cell, moment);
    }
    else if constexpr (M + GROUP <= P)
    {
        group<R, P, M + GROUP, GROUP>(a, number, xq, range, cell, moment);
    }
}

template <class R, int P>
__global__ void __launch_bounds__(c_threads) p2m(P2mArgs<R> a)
{
    const int cell      = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    double    moment[4] = {0, 0, 0, 0};
    wait_for_previous();
    if (cell < a.leaves.num)
    {
        group<R, P, 0, c_group>(a, static_cast<int>(blockIdx.y), a.xq, particles_of(a, cell), cell, moment);
    }
    if (blockIdx.y == 0 && a.sums)
    {
        add_block_moments(a.partial, a.results, moment);
    }
}

/* Few cells: a block has 32 of them, and each warp one column of all of these. On the fft path the particles of
 * neighbouring cells are neighbours, so that they are fetched at once, where each thread by itself would wait for one
 * after the other; on an octree, whose leaves have another order, only if they are not far apart. */
template <class R, int P>
__global__ void __launch_bounds__(c_threads) p2m_of_few(P2mArgs<R> a)
{
    __shared__ Vec4<R> staged[c_mostStaged];
    const int          lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int          cell      = static_cast<int>(blockIdx.x) * 32 + lane;
    double             moment[4] = {0, 0, 0, 0};
    wait_for_previous();
    int2      range = particles_of(a, min(cell, a.leaves.num - 1));
    const int first = __reduce_min_sync(0xffffffffu, range.x), num = __reduce_max_sync(0xffffffffu, range.y) - first;
    const Vec4<R>* xq = a.xq;
    if (num < c_mostStaged)
    {
        for (int s = static_cast<int>(threadIdx.x); s <= num; s += c_threads)
        {
            staged[s] = a.xq[first + s];
        }
        xq = staged;
        range.x -= first;
        range.y -= first;
        __syncthreads();
    }
    if (cell < a.leaves.num)
    {
        group<R, P, 0, 1>(a, static_cast<int>(blockIdx.y) * (c_threads / 32) + warp, xq, range, cell, moment);
    }
    if (blockIdx.y == 0 && a.sums)
    {
        add_block_moments(a.partial, a.results, moment);
    }
}

/* Any order: a thread has one column, whose length SIZE bounds at compile time. */
template <class R, int SIZE>
__global__ void __launch_bounds__(c_threads) p2m_general(P2mArgs<R> a)
{
    const int cell = static_cast<int>(blockIdx.x * c_threads + threadIdx.x), m = static_cast<int>(blockIdx.y);
    const int length    = a.p + 1 - m;
    double    moment[4] = {0, 0, 0, 0};
    R         re[SIZE], im[SIZE], factor[SIZE];
    wait_for_previous();
#pragma unroll
    for (int i = 0; i < SIZE; i++)
    {
        re[i] = im[i] = 0;
        factor[i]     = static_cast<R>(monic_factor(m + i, m));
    }
    const int2 range = cell < a.leaves.num ? particles_of(a, cell) : make_int2(0, 0);
    for (int s = range.x; s < range.y; s++)
    {
        const Vec4<R> v  = a.xq[s];
        const R       r2 = v.x * v.x + v.y * v.y + v.z * v.z;
        R             u = v.w, w = 0, u_below = 0, w_below = 0;
        moment[0] += static_cast<double>(v.w * v.x);
        moment[1] += static_cast<double>(v.w * v.y);
        moment[2] += static_cast<double>(v.w * v.z);
        moment[3] += static_cast<double>(v.w * r2);
        for (int k = 1; k <= m; k++)
        {
            const R t = u * v.x + w * v.y;
            w         = w * v.x - u * v.y;
            u         = t;
        }
        re[0] += u;
        im[0] += w;
#pragma unroll
        for (int i = 1; i < SIZE; i++)
        {
            const R t = factor[i] * r2, u_next = v.z * u - t * u_below, w_next = v.z * w - t * w_below;
            u_below = u;
            w_below = w;
            u       = u_next;
            w       = w_next;
            re[i] += u;
            im[i] += w;
        }
    }
    const size_t stride = a.leaves.stride;
    R*           out    = a.field + static_cast<size_t>(harm_re(a.p, m, m)) * stride + cell;
#pragma unroll
    for (int i = 0; i < SIZE; i++)
    {
        if (i < length && cell < a.leaves.num)
        {
            const R g                            = static_cast<R>(monic_scale(m + i, m));
            out[static_cast<size_t>(i) * stride] = g * re[i];
            if (m > 0)
            {
                out[static_cast<size_t>(length + i) * stride] = g * im[i];
            }
        }
    }
    if (m == 0 && a.sums)
    {
        if (cell < a.leaves.num)
        {
            shift_moments(a, cell, static_cast<double>(re[0]), moment);
        }
        add_block_moments(a.partial, a.results, moment);
    }
}

template <class R, int P>
static void launch(const P2mArgs<R>& a, cudaStream_t stream)
{
    if (a.leaves.num < c_fewCells)
    {
        const dim3 grid(static_cast<unsigned>(blocks_for(a.leaves.num, 32)),
                        static_cast<unsigned>(blocks_for(P + 1, c_threads / 32)));
        p2m_of_few<R, P><<<grid, c_threads, 0, stream>>>(a);
    }
    else
    {
        const dim3 grid(static_cast<unsigned>(blocks_for(a.leaves.num, c_threads)),
                        static_cast<unsigned>(P / c_group + 1));
        p2m<R, P><<<grid, c_threads, 0, stream>>>(a);
    }
}

template <class R, int SIZE>
static void launch_general(const P2mArgs<R>& a, cudaStream_t stream)
{
    const dim3 grid(static_cast<unsigned>(blocks_for(a.leaves.num, c_threads)), static_cast<unsigned>(a.p + 1));
    p2m_general<R, SIZE><<<grid, c_threads, 0, stream>>>(a);
}

static size_t partial_bytes(int num_leaves)
{
    return static_cast<size_t>(blocks_for(num_leaves, num_leaves < c_fewCells ? 32 : c_threads)) * 4 * sizeof(double);
}

template <class R>
static gmxfmm_status dispatch(gmxfmm_plan* plan, bool sums, cudaStream_t stream)
{
    fmm_device*      d   = plan->device;
    const Expansions far = d->path->expansions(plan);
    P2mArgs<R>       a;
    a.g          = make_geometry(plan);
    a.leaves     = far.leaves;
    a.p          = plan->far.order;
    a.sums       = sums ? 1 : 0;
    a.cell_start = d->sources.cell_start.as<int>();
    a.xq         = d->sources.xq.as<Vec4<R>>();
    a.field      = static_cast<R*>(far.multipole);
    a.partial    = d->p2m_partial.as<double>();
    a.results    = d->results.as<StepResults>();
    if (partial_bytes(a.leaves.num) > d->p2m_partial.capacity)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER, "no memory reserved for %d cells", a.leaves.num);
    }
    switch (plan->far.order)
    {
#define FMM_LAUNCH(P)                                                                                                  \
    case P:                                                                                                            \
        launch<R, P>(a, stream);                                                                                       \
        break;
        FMM_SPECIAL_ORDERS(FMM_LAUNCH)
#undef FMM_LAUNCH
    default:
        a.p <= 4    ? launch_general<R, 5>(a, stream)
        : a.p <= 12 ? launch_general<R, 13>(a, stream)
        : a.p <= 20 ? launch_general<R, 21>(a, stream)
                    : launch_general<R, FMM_OCTREE_MAX_ROTATION_ORDER + 1>(a, stream);
    }
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_p2m(gmxfmm_plan* plan, bool sums, cudaStream_t stream)
{
    return is_double(plan) ? dispatch<double>(plan, sums, stream) : dispatch<float>(plan, sums, stream);
}

gmxfmm_status fmm_cuda_p2m_reserve(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    return fmm_device_reserve(plan, &d->p2m_partial, partial_bytes(d->path->expansions(plan).leaves.num));
}
