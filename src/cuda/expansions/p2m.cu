/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * P2M, THEORY (4). Each thread has some columns (fixed m, degrees m..p) of one cell, and lanes have neighbouring cells,
 * so that coefficients stay in registers and writes are contiguous. The moments for the background are computed with
 * the first columns.
 */
#include <algorithm>

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

/* Moments for the background: none; rows of sums of the blocks; and all of these added up. */
enum class Moments
{
    None,
    Rows,
    Whole
};

template <class R>
struct P2mArgs
{
    Geometry       g;
    Leaves         leaves;
    int            p;
    int            first_block, end; /* of the blocks for all leaves; leaves before `end` are computed */
    int            first_row;        /* of `partial`: blocks before it belong to another part of the far field */
    Moments        moments;
    const int*     cell_start;
    const Vec4<R>* xq;
    R*             field;
    double*        partial; /* blocks x 4 */
    StepResults*   results;
};

/* Adds up the dipole and sum q r^2 of so many blocks; of one block of c_threads. */
static __device__ void sum_moments(const double* partial, int rows, StepResults* results)
{
    const int column = static_cast<int>(threadIdx.x % 4);
    double    part   = 0;
    for (int row = static_cast<int>(threadIdx.x / 4); row < rows; row += c_threads / 4)
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
    }
}

/* The number of the calling block among those for all leaves. */
template <class R>
static __device__ inline int block_number(const P2mArgs<R>& a)
{
    return a.first_block + static_cast<int>(blockIdx.x);
}

/* Adds up the dipole and sum q r^2 of a block's cells; the last block writes those of all, unless other devices have
 * some of them. */
template <class R>
static __device__ void add_block_moments(const P2mArgs<R>& a, const double* moment)
{
    const int row = block_number(a);
    for (int k = 0; k < 4; k++)
    {
        const double sum = block_sum<c_threads>(moment[k]);
        if (threadIdx.x == 0 && row >= a.first_row)
        {
            a.partial[4 * row + k] = sum;
        }
    }
    if (a.moments == Moments::Whole && is_last_block(&a.results->p2m_done))
    {
        sum_moments(a.partial, static_cast<int>(gridDim.x), a.results);
        if (threadIdx.x == 0)
        {
            a.results->p2m_done = 0;
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
    if (M == 0 && a.moments != Moments::None)
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
    const int cell      = block_number(a) * c_threads + static_cast<int>(threadIdx.x);
    double    moment[4] = {0, 0, 0, 0};
    wait_for_previous();
    if (cell < a.end)
    {
        group<R, P, 0, c_group>(a, static_cast<int>(blockIdx.y), a.xq, particles_of(a, cell), cell, moment);
    }
    if (blockIdx.y == 0 && a.moments != Moments::None)
    {
        add_block_moments(a, moment);
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
    const int          cell      = block_number(a) * 32 + lane;
    double             moment[4] = {0, 0, 0, 0};
    wait_for_previous();
    int2      range = particles_of(a, min(cell, a.end - 1));
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
    if (cell < a.end)
    {
        group<R, P, 0, 1>(a, static_cast<int>(blockIdx.y) * (c_threads / 32) + warp, xq, range, cell, moment);
    }
    if (blockIdx.y == 0 && a.moments != Moments::None)
    {
        add_block_moments(a, moment);
    }
}

/* Any order: a thread has one column, whose length SIZE bounds at compile time. */
template <class R, int SIZE>
__global__ void __launch_bounds__(c_threads) p2m_general(P2mArgs<R> a)
{
    const int cell = block_number(a) * c_threads + static_cast<int>(threadIdx.x), m = static_cast<int>(blockIdx.y);
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
    const int2 range = cell < a.end ? particles_of(a, cell) : make_int2(0, 0);
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
        if (i < length && cell < a.end)
        {
            const R g                            = static_cast<R>(monic_scale(m + i, m));
            out[static_cast<size_t>(i) * stride] = g * re[i];
            if (m > 0)
            {
                out[static_cast<size_t>(length + i) * stride] = g * im[i];
            }
        }
    }
    if (m == 0 && a.moments != Moments::None)
    {
        if (cell < a.end)
        {
            shift_moments(a, cell, static_cast<double>(re[0]), moment);
        }
        add_block_moments(a, moment);
    }
}

/*
 * The same of charges and dipoles, with blocks of as many threads as leaves. A multipole is D = (q + mu . grad) V of
 * harmonics V, to which the operator of a product applies: the recurrences of V without charge give those of D, since
 * of z V it is z D + mu_z V, and of r^2 V it is r^2 D + 2 r . mu V, THEORY (50).
 */
template <class R, int SIZE>
__global__ void __launch_bounds__(c_threads) p2m_dipoles(P2mArgs<R> a, const Vec4<R>* dipoles)
{
    const int cell = block_number(a) * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
    const int m = static_cast<int>(blockIdx.y), length = a.p + 1 - m;
    R         re[SIZE], im[SIZE], factor[SIZE];
    wait_for_previous();
#pragma unroll
    for (int i = 0; i < SIZE; i++)
    {
        re[i] = im[i] = 0;
        factor[i]     = static_cast<R>(monic_factor(m + i, m));
    }
    if (cell >= a.end)
    {
        return;
    }
    const int2 range = particles_of(a, cell);
    Vec4<R>    next = a.xq[range.x], next_mu = dipoles[range.x]; /* the arrays have room for one more particle */
    for (int s = range.x; s < range.y; s++)
    {
        const Vec4<R> v = next, mu = next_mu;
        next       = a.xq[s + 1];
        next_mu    = dipoles[s + 1];
        const R r2 = v.x * v.x + v.y * v.y + v.z * v.z, along = 2 * (v.x * mu.x + v.y * mu.y + v.z * mu.z);
        R       u = 1, w = 0, du = v.w, dw = 0; /* conj Upsilon(x, y, z) = Upsilon(x, -y, z) */
        for (int k = 1; k <= m; k++)
        {
            const R du_next = du * v.x + dw * v.y + (u * mu.x + w * mu.y);
            const R dw_next = dw * v.x - du * v.y + (w * mu.x - u * mu.y);
            const R u_next  = u * v.x + w * v.y;
            w               = w * v.x - u * v.y;
            u               = u_next;
            du              = du_next;
            dw              = dw_next;
        }
        R u_below = 0, w_below = 0, du_below = 0, dw_below = 0;
        re[0] += du;
        im[0] += dw;
#pragma unroll
        for (int i = 1; i < SIZE; i++)
        {
            if (i < length)
            {
                const R t = factor[i] * r2, dt = factor[i] * along;
                const R du_next = v.z * du + mu.z * u - (t * du_below + dt * u_below);
                const R dw_next = v.z * dw + mu.z * w - (t * dw_below + dt * w_below);
                const R u_next = v.z * u - t * u_below, w_next = v.z * w - t * w_below;
                u_below  = u;
                w_below  = w;
                du_below = du;
                dw_below = dw;
                u        = u_next;
                w        = w_next;
                du       = du_next;
                dw       = dw_next;
                re[i] += du;
                im[i] += dw;
            }
        }
    }
    const size_t stride = a.leaves.stride;
    R*           out    = a.field + static_cast<size_t>(harm_re(a.p, m, m)) * stride + cell;
#pragma unroll
    for (int i = 0; i < SIZE; i++)
    {
        if (i < length)
        {
            const R g                            = static_cast<R>(monic_scale(m + i, m));
            out[static_cast<size_t>(i) * stride] = g * re[i];
            if (m > 0)
            {
                out[static_cast<size_t>(length + i) * stride] = g * im[i];
            }
        }
    }
}

/* Moments of other blocks come from other devices; with `rows` those of all are added up. Every part of the far field
 * needs the sums. */
struct ShareArgs
{
    const double* partial;
    int           rows, num;
    StepResults*  results;
    const double* total_charge;
    double*       background[GMXFMM_MAX_DEVICES]; /* 7 numbers each; on other devices */
};

__global__ void __launch_bounds__(c_threads) share_moments(const __grid_constant__ ShareArgs a)
{
    const int part = static_cast<int>(threadIdx.x / 8), i = static_cast<int>(threadIdx.x % 8);
    if (a.rows > 0)
    {
        sum_moments(a.partial, a.rows, a.results);
        __syncthreads();
    }
    if (part < a.num && i < c_background)
    {
        a.background[part][i] = i < 6 ? a.results->moments[i] : *a.total_charge;
    }
}

static bool has_special_order(const gmxfmm_plan* plan)
{
    switch (plan->far.order)
    {
#define FMM_CASE(P) case P:
        FMM_SPECIAL_ORDERS(FMM_CASE)
#undef FMM_CASE
        return true;
    default:
        return false;
    }
}

/* Leaves of a block, by the number of all leaves. */
static int block_leaves(const gmxfmm_plan* plan, int num_leaves)
{
    return num_leaves < c_fewCells && has_special_order(plan) ? 32 : c_threads;
}

template <class R, int P>
static void launch(const P2mArgs<R>& a, unsigned blocks, cudaStream_t stream)
{
    if (a.leaves.num < c_fewCells)
    {
        const dim3 grid(blocks, static_cast<unsigned>(blocks_for(P + 1, c_threads / 32)));
        p2m_of_few<R, P><<<grid, c_threads, 0, stream>>>(a);
    }
    else
    {
        const dim3 grid(blocks, static_cast<unsigned>(P / c_group + 1));
        p2m<R, P><<<grid, c_threads, 0, stream>>>(a);
    }
}

template <class R, int SIZE>
static void launch_general(const P2mArgs<R>& a, unsigned blocks, cudaStream_t stream)
{
    p2m_general<R, SIZE><<<dim3(blocks, static_cast<unsigned>(a.p + 1)), c_threads, 0, stream>>>(a);
}

template <class R>
static void
launch_dipoles(const P2mArgs<R>& a, const DeviceBuffer& mu, unsigned blocks, unsigned threads, cudaStream_t stream)
{
    const dim3           grid(blocks, static_cast<unsigned>(a.p + 1));
    const Vec4<R>* const dipoles = mu.as<Vec4<R>>();
    switch (a.p)
    {
#define FMM_LAUNCH(P)                                                                                                  \
    case P:                                                                                                            \
        p2m_dipoles<R, P + 1><<<grid, threads, 0, stream>>>(a, dipoles);                                               \
        break;
        FMM_SPECIAL_ORDERS(FMM_LAUNCH)
#undef FMM_LAUNCH
    default:
        a.p < 4     ? p2m_dipoles<R, 4><<<grid, threads, 0, stream>>>(a, dipoles)
        : a.p <= 20 ? p2m_dipoles<R, 21><<<grid, threads, 0, stream>>>(a, dipoles)
                    : p2m_dipoles<R, FMM_OCTREE_MAX_ROTATION_ORDER + 1><<<grid, threads, 0, stream>>>(a, dipoles);
    }
}

static int num_rows(const gmxfmm_plan* plan)
{
    const int leaves = plan->device->far.path->expansions(plan).leaves.num;
    return blocks_for(leaves, block_leaves(plan, leaves));
}

static size_t partial_bytes(const gmxfmm_plan* plan)
{
    return static_cast<size_t>(num_rows(plan)) * 4 * sizeof(double);
}

int fmm_cuda_p2m_leaves(const gmxfmm_plan* plan)
{
    return block_leaves(plan, plan->device->far.path->expansions(plan).leaves.num);
}

template <class R>
static gmxfmm_status dispatch(gmxfmm_plan* plan, const FarRange& far, Moments moments, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    P2mArgs<R>  a;
    a.g             = make_geometry(plan);
    a.leaves        = d->far.path->expansions(plan).leaves;
    const int size  = block_leaves(plan, a.leaves.num);
    a.p             = plan->far.order;
    a.first_block   = far.first_cell / size;
    a.end           = std::min(blocks_for(far.end_cell, size) * size, a.leaves.num);
    a.first_row     = blocks_for(far.first_cell, size);
    a.moments       = moments;
    a.cell_start    = far.cell_start;
    a.xq            = static_cast<const Vec4<R>*>(far.xq);
    a.field         = static_cast<R*>(far.multipole);
    a.partial       = d->far.moments.partial.as<double>();
    a.results       = d->output.results.as<StepResults>();
    const int count = blocks_for(a.end, size) - a.first_block;
    if (partial_bytes(plan) > d->far.moments.partial.capacity)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER, "no memory reserved for %d cells", a.leaves.num);
    }
    if (far.end_cell <= far.first_cell)
    {
        return GMXFMM_OK;
    }
    const unsigned blocks = static_cast<unsigned>(count);
    if (fmm_has_dipoles(plan)) /* which need other moments (particles/permute.cu) */
    {
        const ParticleSet& of = d->particles.sources;
        launch_dipoles<R>(a, fmm_is_adaptive(plan) ? of.scaled_mu : of.mu, blocks, static_cast<unsigned>(size), stream);
        FMM_CUDA(plan, cudaGetLastError());
        return GMXFMM_OK;
    }
    switch (plan->far.order)
    {
#define FMM_LAUNCH(P)                                                                                                  \
    case P:                                                                                                            \
        launch<R, P>(a, blocks, stream);                                                                               \
        break;
        FMM_SPECIAL_ORDERS(FMM_LAUNCH)
#undef FMM_LAUNCH
    default:
        a.p <= 4    ? launch_general<R, 5>(a, blocks, stream)
        : a.p <= 12 ? launch_general<R, 13>(a, blocks, stream)
        : a.p <= 20 ? launch_general<R, 21>(a, blocks, stream)
                    : launch_general<R, FMM_OCTREE_MAX_ROTATION_ORDER + 1>(a, blocks, stream);
    }
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_p2m(gmxfmm_plan* plan, bool moments)
{
    for (int k = 0; k < num_devices(plan->device); k++)
    {
        const FarRange        far = far_range(plan, k);
        const Moments         of  = !moments ? Moments::None : far.shared ? Moments::Rows : Moments::Whole;
        const DeviceSchedule& s   = plan->device[k].schedule;
        DeviceScope           scope(plan->device[k].id);
        if (convolves(plan, k))
        {
            FMM_TRY(is_double(plan) ? dispatch<double>(plan, far, of, s.far) : dispatch<float>(plan, far, of, s.far));
            FMM_CUDA(plan, far.shared ? cudaEventRecord(s.p2m_done, s.far) : cudaSuccess);
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_share_moments(gmxfmm_plan* plan, bool sum, double* const* to, int num, cudaStream_t stream)
{
    const fmm_device* d = plan->device;
    ShareArgs         a;
    a.partial      = d->far.moments.partial.as<double>();
    a.rows         = sum ? num_rows(plan) : 0;
    a.num          = num;
    a.results      = d->output.results.as<StepResults>();
    a.total_charge = d->charges.results.as<ChargeResults>()->total;
    std::copy(to, to + num, a.background);
    share_moments<<<1, c_threads, 0, stream>>>(a);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_p2m_reserve(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    return fmm_device_reserve(plan, &d->far.moments.partial, partial_bytes(plan));
}

gmxfmm_status fmm_cuda_reserve_background(gmxfmm_plan* plan, fmm_device* to)
{
    DeviceScope scope(to->id);
    return fmm_device_reserve(plan, &to->far.moments.background, c_background * sizeof(double));
}

void fmm_cuda_release_background(gmxfmm_plan* plan, fmm_device* to)
{
    fmm_device_release(plan, &to->far.moments.background);
}
