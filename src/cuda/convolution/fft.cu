/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Batched three-dimensional transforms, real to complex and back, of the short lengths that grids of cells have. A
 * length n = n1 n2 with n1, n2 <= 10 takes two steps (Cooley & Tukey 1965), with input i = n2 j + q and output k = k1 +
 * n1 k2: Y_q,k1 = w_n^(q k1) sum_j x_(n2 j + q) w_n1^(j k1),   X_(k1 + n1 k2) = sum_q Y_q,k1 w_n2^(q k2). There are two
 * kernels for each direction, so that data pass through memory twice, not thrice: one transforms planes of the last two
 * dimensions in shared memory, the other the first dimension. Two real lines are transformed as one complex line. Other
 * lengths are transformed by cuFFT.
 */
#include <vector>

#include "cuda/convolution/convolution.h"
#include "cuda/runtime/chain.h"
#include "cuda/convolution/dft.h"

extern "C"
{
#include "fmm/geometry/fftsize.h"
}

enum
{
    c_smallPlane = 600 /* cells; below this a block has 64 threads, otherwise 128 */
};

struct Length
{
    int n, n1, n2;
};

template <class R>
struct FftArgs
{
    Length         d[3];
    int            nz, num_coef;
    const Vec2<R>* twiddle[3]; /* exp(-2 pi i k / n), k < n */
    R*             field;      /* [coef][n0][n1][n2] */
    Vec2<R>*       spectrum;   /* [coef][n0][n1][nz] */
};

/* v times the twiddle factor w_n^k, or w_n^-k without FORWARD. */
template <bool FORWARD, class R>
static __device__ inline Vec2<R> twiddled(const Vec2<R>& v, const Vec2<R>* twiddle, int k)
{
    const Vec2<R> w = twiddle[k];
    return times(v, w.x, FORWARD ? w.y : -w.y);
}

/* Quotient of small integers; adding 1/2 makes it exact in spite of rounding. */
static __device__ inline int quotient(int a, float inverse)
{
    return static_cast<int>((static_cast<float>(a) + 0.5f) * inverse);
}

template <class Load, class Store>
struct TaskIo
{
    Load  load;
    Store store;
};
template <class Load, class Store>
TaskIo(Load, Store) -> TaskIo<Load, Store>;

/* First step of `lines` transforms, from elements i of each line at from(line, i) to work[line n + k1 n2 + q]; a task
 * is one (line, q). */
template <bool FORWARD, class R, class From>
static __device__ inline void
first_along_lines(const Length& d, int lines, const Vec2<R>* twiddle, Vec2<R>* work, From from)
{
    const float inverse = 1.0f / static_cast<float>(d.n2);
    dft_tasks<FORWARD, R>(d.n1, lines * d.n2, static_cast<int>(blockDim.x), static_cast<int>(threadIdx.x),
                          [=](int task)
                          {
                              const int line = quotient(task, inverse), q = task - line * d.n2;
                              Vec2<R>*  to = work + line * d.n + q;
                              return TaskIo{[=](int j) { return from(line, j * d.n2 + q); },
                                            [=](int k, const Vec2<R>& v)
                                            { to[k * d.n2] = twiddled<FORWARD>(v, twiddle, q * k); }};
                          });
}

/* Second step, which passes element k of each line to to(line, k, value). */
template <bool FORWARD, class R, class To>
static __device__ inline void second_along_lines(const Length& d, int lines, const Vec2<R>* work, To to)
{
    const float inverse = 1.0f / static_cast<float>(d.n1);
    dft_tasks<FORWARD, R>(
        d.n2, lines * d.n1, static_cast<int>(blockDim.x), static_cast<int>(threadIdx.x),
        [=](int task)
        {
            const int      line = quotient(task, inverse), k1 = task - line * d.n1;
            const Vec2<R>* from = work + line * d.n + k1 * d.n2;
            return TaskIo{[=](int q) { return from[q]; }, [=](int k, const Vec2<R>& v) { to(line, k1 + d.n1 * k, v); }};
        });
}

/* First step of transforms across `width` columns, from element i of column c at from[i width + c] to work[(k1 n2 + q)
 * width + c]. */
template <bool FORWARD, class R>
static __device__ inline void
first_across(const Length& d, int width, const Vec2<R>* twiddle, const Vec2<R>* from, Vec2<R>* work)
{
    const float inverse = 1.0f / static_cast<float>(width);
    dft_tasks<FORWARD, R>(d.n1, width * d.n2, static_cast<int>(blockDim.x), static_cast<int>(threadIdx.x),
                          [=](int task)
                          {
                              const int      q = quotient(task, inverse);
                              const Vec2<R>* f = from + task; /* q width + c */
                              Vec2<R>*       t = work + task;
                              return TaskIo{[=](int j) { return f[j * d.n2 * width]; }, [=](int k, const Vec2<R>& v)
                                            { t[k * d.n2 * width] = twiddled<FORWARD>(v, twiddle, q * k); }};
                          });
}

template <bool FORWARD, class R>
static __device__ inline void second_across(const Length& d, int width, const Vec2<R>* work, Vec2<R>* to)
{
    const float inverse = 1.0f / static_cast<float>(width);
    dft_tasks<FORWARD, R>(d.n2, width * d.n1, static_cast<int>(blockDim.x), static_cast<int>(threadIdx.x),
                          [=](int task)
                          {
                              const int      k1 = quotient(task, inverse), c = task - k1 * width;
                              const Vec2<R>* f = work + k1 * d.n2 * width + c;
                              Vec2<R>*       t = to + task; /* k1 width + c */
                              return TaskIo{[=](int q) { return f[q * width]; },
                                            [=](int k, const Vec2<R>& v) { t[k * d.n1 * width] = v; }};
                          });
}

/* Separates the spectra of the real lines 2 l and 2 l + 1 from that of the complex line made of the two. */
template <class R>
static __device__ inline void part_lines(const FftArgs<R>& a, int lines, const Vec2<R>* from, Vec2<R>* to)
{
    const int   n       = a.d[2].n;
    const float inverse = 1.0f / static_cast<float>(a.nz);
    for (int item = static_cast<int>(threadIdx.x); item < lines * a.nz; item += static_cast<int>(blockDim.x))
    {
        const int     line = quotient(item, inverse), k = item - line * a.nz;
        const Vec2<R> z = from[line * n + k], c = from[line * n + (k > 0 ? n - k : 0)];
        to[2 * line * a.nz + k] = {R(0.5) * (z.x + c.x), R(0.5) * (z.y - c.y)};
        if (2 * line + 1 < a.d[1].n)
        {
            to[(2 * line + 1) * a.nz + k] = {R(0.5) * (z.y + c.y), R(0.5) * (c.x - z.x)};
        }
    }
}

/* The inverse: joins two spectra to that of a complex line. */
template <class R>
static __device__ inline void join_lines(const FftArgs<R>& a, int lines, const Vec2<R>* from, Vec2<R>* to)
{
    const int   n       = a.d[2].n;
    const float inverse = 1.0f / static_cast<float>(n);
    for (int item = static_cast<int>(threadIdx.x); item < lines * n; item += static_cast<int>(blockDim.x))
    {
        const int      line = quotient(item, inverse), k = item - line * n;
        const bool     mirrored = k >= a.nz;
        const Vec2<R>* row      = from + 2 * line * a.nz + (mirrored ? n - k : k);
        Vec2<R>        x = row[0], y = {0, 0};
        if (2 * line + 1 < a.d[1].n)
        {
            y = row[a.nz];
        }
        x.y      = mirrored ? -x.y : x.y;
        y.y      = mirrored ? -y.y : y.y;
        to[item] = {x.x - y.y, x.y + y.x};
    }
}

template <class R>
static __host__ __device__ inline int plane_words(const FftArgs<R>& a)
{
    const int lines = (a.d[1].n + 1) / 2;
    return lines * a.d[2].n > a.d[1].n * a.nz ? lines * a.d[2].n : a.d[1].n * a.nz;
}

/* Each block transforms one plane of one coefficient, in the last two dimensions. */
template <class R>
__global__ void __launch_bounds__(128) planes_forward(FftArgs<R> a)
{
    extern __shared__ char shared[];
    Vec2<R>*               first  = reinterpret_cast<Vec2<R>*>(shared);
    Vec2<R>*               second = first + plane_words(a);
    const int              rows = a.d[1].n, n = a.d[2].n, lines = (rows + 1) / 2;
    const R*               in  = a.field + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(rows * n);
    Vec2<R>*               out = a.spectrum + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(rows * a.nz);
    wait_for_previous();
    first_along_lines<true>(a.d[2], lines, a.twiddle[2], first,
                            [=](int line, int i)
                            {
                                const R* x = in + 2 * line * n + i;
                                return Vec2<R>{x[0], 2 * line + 1 < rows ? x[n] : R(0)};
                            });
    __syncthreads();
    second_along_lines<true>(a.d[2], lines, first,
                             [=](int line, int k, const Vec2<R>& v) { second[line * n + k] = v; });
    __syncthreads();
    part_lines(a, lines, second, first);
    __syncthreads();
    first_across<true>(a.d[1], a.nz, a.twiddle[1], first, second);
    __syncthreads();
    second_across<true>(a.d[1], a.nz, second, out);
}

template <class R>
__global__ void __launch_bounds__(128) planes_backward(FftArgs<R> a)
{
    extern __shared__ char shared[];
    Vec2<R>*               first  = reinterpret_cast<Vec2<R>*>(shared);
    Vec2<R>*               second = first + plane_words(a);
    const int              rows = a.d[1].n, n = a.d[2].n, lines = (rows + 1) / 2;
    R*                     out = a.field + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(rows * n);
    const Vec2<R>*         in  = a.spectrum + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(rows * a.nz);
    wait_for_previous();
    first_across<false>(a.d[1], a.nz, a.twiddle[1], in, first);
    __syncthreads();
    second_across<false>(a.d[1], a.nz, first, second);
    __syncthreads();
    join_lines(a, lines, second, first);
    __syncthreads();
    first_along_lines<false>(a.d[2], lines, a.twiddle[2], second, [=](int line, int i) { return first[line * n + i]; });
    __syncthreads();
    /* written through shared memory: neighbouring threads have elements n1 apart */
    R* real = reinterpret_cast<R*>(first);
    second_along_lines<false>(a.d[2], lines, second,
                              [=](int line, int k, const Vec2<R>& v)
                              {
                                  real[2 * line * n + k]       = v.x;
                                  real[(2 * line + 1) * n + k] = v.y;
                              });
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < rows * n; i += static_cast<int>(blockDim.x))
    {
        out[i] = real[i];
    }
}

/* The first dimension, in place. Each lane has one of 32 neighbouring lines; the tasks of these are divided among the
 * warps. */
template <bool FORWARD, class R>
__global__ void first_dimension(FftArgs<R> a)
{
    extern __shared__ char shared[];
    const Length           d    = a.d[0];
    const int              lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int              warps = static_cast<int>(blockDim.x / 32), columns = a.d[1].n * a.nz;
    const int              column = static_cast<int>(blockIdx.x) * 32 + lane;
    const bool             inside = column < columns;
    const size_t           stride = static_cast<size_t>(columns);
    Vec2<R>*               work   = reinterpret_cast<Vec2<R>*>(shared) + lane;
    Vec2<R>*               line =
        a.spectrum + static_cast<size_t>(blockIdx.y) * static_cast<size_t>(d.n) * stride + (inside ? column : 0);
    const Vec2<R>* twiddle = a.twiddle[0];
    wait_for_previous();
    dft_tasks<FORWARD, R>(d.n1, d.n2, warps, warp,
                          [=](int q)
                          {
                              return TaskIo{[=](int j) { return line[static_cast<size_t>(j * d.n2 + q) * stride]; },
                                            [=](int k, const Vec2<R>& v)
                                            { work[(k * d.n2 + q) * 32] = twiddled<FORWARD>(v, twiddle, q * k); }};
                          });
    __syncthreads();
    dft_tasks<FORWARD, R>(d.n2, d.n1, warps, warp,
                          [=](int k1)
                          {
                              return TaskIo{[=](int q) { return work[(k1 * d.n2 + q) * 32]; },
                                            [=](int k, const Vec2<R>& v)
                                            {
                                                if (inside)
                                                {
                                                    line[static_cast<size_t>(k1 + d.n1 * k) * stride] = v;
                                                }
                                            }};
                          });
}

static Length make_length(int n)
{
    const int    n1 = fmm_two_step_radix(n);
    const Length d  = {n, n1, n1 > 0 ? n / n1 : 0};
    return d;
}

template <class R>
static FftArgs<R> make_args(const gmxfmm_plan* plan, const DeviceBuffer& spectrum)
{
    const fmm_device* d = plan->device;
    FftArgs<R>        a;
    const Vec2<R>*    twiddle = d->twiddles.as<Vec2<R>>();
    for (int i = 0; i < 3; i++)
    {
        a.d[i]       = make_length(fmm_convolved(plan)->n[i]);
        a.twiddle[i] = twiddle;
        twiddle += a.d[i].n;
    }
    a.nz       = a.d[2].n / 2 + 1;
    a.num_coef = d->num_coef;
    a.field    = d->field.as<R>();
    a.spectrum = spectrum.as<Vec2<R>>();
    return a;
}

template <class R>
static size_t plane_bytes(const FftArgs<R>& a)
{
    return 2 * static_cast<size_t>(plane_words(a)) * sizeof(Vec2<R>);
}

template <class R>
static gmxfmm_status prepare(gmxfmm_plan* plan)
{
    fmm_device*      d = plan->device;
    const FftArgs<R> a = make_args<R>(plan, d->spectrum);
    d->own_transforms =
        a.d[0].n1 > 0 && a.d[1].n1 > 0 && a.d[2].n1 > 0 && plane_bytes(a) <= static_cast<size_t>(d->limits.max_shared);
    if (!d->own_transforms)
    {
        return GMXFMM_OK;
    }
    std::vector<Vec2<R>> w;
    for (int i = 0; i < 3; i++)
    {
        for (int k = 0; k < a.d[i].n; k++)
        {
            w.push_back({static_cast<R>(root_cosine(k, a.d[i].n)), static_cast<R>(-root_sine(k, a.d[i].n))});
        }
    }
    FMM_TRY(fmm_device_reserve(plan, &d->twiddles, w.size() * sizeof(Vec2<R>)));
    FMM_TRY(fmm_cuda_upload(plan, d->twiddles.memory, w.data(), w.size() * sizeof(Vec2<R>)));
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_fft_prepare(gmxfmm_plan* plan)
{
    return is_double(plan) ? prepare<double>(plan) : prepare<float>(plan);
}

template <class R>
static gmxfmm_status transform(gmxfmm_plan* plan, bool forward, const DeviceBuffer& spectrum, cudaStream_t stream)
{
    const FftArgs<R> a             = make_args<R>(plan, spectrum);
    const size_t     bytes         = plane_bytes(a);
    const unsigned   plane_threads = a.d[1].n * a.d[2].n < c_smallPlane ? 64 : 128;
    const unsigned   planes        = static_cast<unsigned>(a.num_coef * a.d[0].n);
    const int        few = a.d[0].n1 < a.d[0].n2 ? a.d[0].n1 : a.d[0].n2, many = a.d[0].n / few;
    const unsigned   threads = static_cast<unsigned>(32 * (few > 2 ? few : many));
    const dim3       lines(static_cast<unsigned>(blocks_for(a.d[1].n * a.nz, 32)), static_cast<unsigned>(a.num_coef));
    const size_t     line_bytes = 32 * static_cast<size_t>(a.d[0].n) * sizeof(Vec2<R>);
    const bool       chains     = plan->device->has_chains;
    if (forward)
    {
        FMM_CUDA(plan, (allow_shared(&plan->device->allowed, planes_forward<R>)));
        FMM_CUDA(plan, (allow_shared(&plan->device->allowed, first_dimension<true, R>)));
        FMM_CUDA(plan, launch_next(chains, planes_forward<R>, planes, plane_threads, bytes, stream, a));
        FMM_CUDA(plan, launch_next(chains, first_dimension<true, R>, lines, threads, line_bytes, stream, a));
    }
    else
    {
        FMM_CUDA(plan, (allow_shared(&plan->device->allowed, planes_backward<R>)));
        FMM_CUDA(plan, (allow_shared(&plan->device->allowed, first_dimension<false, R>)));
        FMM_CUDA(plan, launch_next(chains, first_dimension<false, R>, lines, threads, line_bytes, stream, a));
        FMM_CUDA(plan, launch_next(chains, planes_backward<R>, planes, plane_threads, bytes, stream, a));
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_own_transform(gmxfmm_plan* plan, bool forward, const DeviceBuffer& spectrum, cudaStream_t stream)
{
    return is_double(plan) ? transform<double>(plan, forward, spectrum, stream)
                           : transform<float>(plan, forward, spectrum, stream);
}

gmxfmm_status fmm_cuda_find_chains(gmxfmm_plan* plan)
{
    cudaFuncAttributes attributes;
    int                driver   = 0;
    const int          captures = 12030; /* the first CUDA version whose graphs can capture such launches */
    FMM_CUDA(plan, cudaDriverGetVersion(&driver));
    FMM_CUDA(plan, cudaFuncGetAttributes(&attributes, planes_forward<float>));
    /* in code that was compiled for earlier devices wait_for_previous does nothing */
    plan->device->has_chains = plan->device->limits.capability >= 90 && attributes.ptxVersion >= 90 &&
                               driver >= captures && CUDART_VERSION >= captures;
    return GMXFMM_OK;
}
