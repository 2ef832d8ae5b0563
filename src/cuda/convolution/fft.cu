/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Batched three-dimensional transforms, real to complex and back, of the short lengths that grids of cells have. A
 * length n = n1 n2 with n1, n2 <= 10 takes two steps (Cooley & Tukey 1965), with input i = n2 j + q and output k = k1 +
 * n1 k2: Y_q,k1 = w_n^(q k1) sum_j x_(n2 j + q) w_n1^(j k1),   X_(k1 + n1 k2) = sum_q Y_q,k1 w_n2^(q k2). There are two
 * kernels for each direction, so that data pass through memory twice, not thrice: one transforms planes of the last two
 * dimensions in shared memory, the other the first dimension. Small grids are transformed whole by one kernel, since a
 * step with few cells takes as long as its chain of kernels. Two real lines are transformed as one complex line. Other
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
    c_smallPlane  = 600,  /* cells; below this a block has 64 threads, otherwise 128 */
    c_mostWhole   = 2000, /* cells of a grid that a block transforms whole, */
    c_mostThreads = 512   /* and threads of such a block, at most */
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
    float          inverse_lines; /* of a plane */
    const Vec2<R>* twiddle[3];    /* exp(-2 pi i k / n), k < n */
    R*             field;         /* [coef][n0][n1][n2] */
    Vec2<R>*       spectrum;      /* [coef][n0][n1][nz] */
    GridRange      range;
};

/* Of a block, in shared memory: where the spectra of all devices are, and for each the end of its layers or columns. */
template <class R>
struct Owners
{
    Vec2<R>* array[GMXFMM_MAX_DEVICES];
    int      end[GMXFMM_MAX_DEVICES];

    /* The array of the device that has a layer or column. */
    __device__ Vec2<R>* array_of(int place) const
    {
        int k = 0;
        while (place >= end[k])
        {
            k++;
        }
        return array[k];
    }
};

/* The block's threads must meet before they use what this has stored. */
template <class R>
static __device__ inline void find_owners(const Spectra& spectra, const int* end, Owners<R>* owners)
{
    const int k = static_cast<int>(threadIdx.x);
    if (k < spectra.num)
    {
        owners->array[k] = static_cast<Vec2<R>*>(spectra.array[k]);
        owners->end[k]   = end[k];
    }
}

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

/* A task of one of several planes: its place among those of its plane, and where the plane begins. */
struct PlaneTask
{
    int place, offset;
};

/* Each plane has n elements and `each` tasks. MANY: there are several. */
template <bool MANY>
static __device__ inline PlaneTask in_plane(int task, int each, float inverse_each, int n)
{
    const int plane = MANY ? quotient(task, inverse_each) : 0;
    return {task - plane * each, plane * n};
}

/* First step of transforms across `width` columns of each plane, from element i of column c at from[i width + c] to
 * work[(k1 n2 + q) width + c]. */
template <bool FORWARD, bool MANY, class R>
static __device__ inline void
first_across(const Length& d, int planes, int width, const Vec2<R>* twiddle, const Vec2<R>* from, Vec2<R>* work)
{
    const int   each    = width * d.n2;
    const float inverse = 1.0f / static_cast<float>(width), inverse_each = MANY ? 1.0f / static_cast<float>(each) : 0;
    dft_tasks<FORWARD, R>(d.n1, planes * each, static_cast<int>(blockDim.x), static_cast<int>(threadIdx.x),
                          [=](int task)
                          {
                              const PlaneTask at = in_plane<MANY>(task, each, inverse_each, width * d.n);
                              const int       q  = quotient(at.place, inverse);
                              const Vec2<R>*  f  = from + at.offset + at.place; /* q width + c */
                              Vec2<R>*        t  = work + at.offset + at.place;
                              return TaskIo{[=](int j) { return f[j * d.n2 * width]; }, [=](int k, const Vec2<R>& v)
                                            { t[k * d.n2 * width] = twiddled<FORWARD>(v, twiddle, q * k); }};
                          });
}

/* Second step, which passes element i of column c of a plane to store(k), where store = at(place) and i width + c =
 * place + k step, step = n1 width, with the plane's own offset. */
template <bool FORWARD, bool MANY, class R, class At>
static __device__ inline void second_across(const Length& d, int planes, int width, const Vec2<R>* work, At at)
{
    const int   each    = width * d.n1;
    const float inverse = 1.0f / static_cast<float>(width), inverse_each = MANY ? 1.0f / static_cast<float>(each) : 0;
    dft_tasks<FORWARD, R>(d.n2, planes * each, static_cast<int>(blockDim.x), static_cast<int>(threadIdx.x),
                          [=](int task)
                          {
                              const PlaneTask in = in_plane<MANY>(task, each, inverse_each, width * d.n);
                              const int       k1 = quotient(in.place, inverse), c = in.place - k1 * width;
                              const Vec2<R>*  f = work + in.offset + k1 * d.n2 * width + c;
                              return TaskIo{[=](int q) { return f[q * width]; }, at(in.offset + in.place)};
                          });
}

/* For second_across: stores to an array of the same order. */
template <class R>
static __device__ inline auto to_array(Vec2<R>* to, int step)
{
    return [=](int task)
    {
        Vec2<R>* t = to + task;
        return [=](int k, const Vec2<R>& v) { t[k * step] = v; };
    };
}

/* Lines of a plane, two real ones in each. */
template <class R>
static __host__ __device__ inline int lines_of_plane(const FftArgs<R>& a)
{
    return (a.d[1].n + 1) / 2;
}

/* A line among those of all planes: its number in its plane, and that of its first row in all of them. */
struct PlaneLine
{
    int line, row;
};

template <bool MANY, class R>
static __device__ inline PlaneLine line_in_plane(const FftArgs<R>& a, int line)
{
    const int plane = MANY ? quotient(line, a.inverse_lines) : 0, own = line - plane * lines_of_plane(a);
    return {own, plane * a.d[1].n + 2 * own};
}

/* Separates the spectra of the real lines 2 l and 2 l + 1 of a plane from that of the complex line made of the two. */
template <bool MANY, class R>
static __device__ inline void part_lines(const FftArgs<R>& a, int planes, const Vec2<R>* from, Vec2<R>* to)
{
    const int   n = a.d[2].n, lines = planes * lines_of_plane(a);
    const float inverse = 1.0f / static_cast<float>(a.nz);
    for (int item = static_cast<int>(threadIdx.x); item < lines * a.nz; item += static_cast<int>(blockDim.x))
    {
        const int       line = quotient(item, inverse), k = item - line * a.nz;
        const PlaneLine in = line_in_plane<MANY>(a, line);
        const Vec2<R>   z = from[line * n + k], c = from[line * n + (k > 0 ? n - k : 0)];
        to[in.row * a.nz + k] = {R(0.5) * (z.x + c.x), R(0.5) * (z.y - c.y)};
        if (2 * in.line + 1 < a.d[1].n)
        {
            to[(in.row + 1) * a.nz + k] = {R(0.5) * (z.y + c.y), R(0.5) * (c.x - z.x)};
        }
    }
}

/* The inverse: joins two spectra to that of a complex line. */
template <bool MANY, class R>
static __device__ inline void join_lines(const FftArgs<R>& a, int planes, const Vec2<R>* from, Vec2<R>* to)
{
    const int   n = a.d[2].n, lines = planes * lines_of_plane(a);
    const float inverse = 1.0f / static_cast<float>(n);
    for (int item = static_cast<int>(threadIdx.x); item < lines * n; item += static_cast<int>(blockDim.x))
    {
        const int       line = quotient(item, inverse), k = item - line * n;
        const PlaneLine in       = line_in_plane<MANY>(a, line);
        const bool      mirrored = k >= a.nz;
        const Vec2<R>*  row      = from + in.row * a.nz + (mirrored ? n - k : k);
        Vec2<R>         x = row[0], y = {0, 0};
        if (2 * in.line + 1 < a.d[1].n)
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
    const int lines = lines_of_plane(a);
    return lines * a.d[2].n > a.d[1].n * a.nz ? lines * a.d[2].n : a.d[1].n * a.nz;
}

/* The plane of a block, of all coefficients. */
template <class R>
static __device__ inline size_t plane_of_block(const FftArgs<R>& a)
{
    return static_cast<size_t>(blockIdx.y) * static_cast<size_t>(a.d[0].n) + static_cast<size_t>(a.range.first_layer) +
           blockIdx.x;
}

/* Planes of one coefficient from their real numbers in the last two dimensions, in shared memory, but for the second
 * step of the second dimension. Leaves what that starts from in `second`. */
template <bool MANY, class R>
static __device__ inline void
planes_to_spectrum(const FftArgs<R>& a, int planes, const R* in, Vec2<R>* first, Vec2<R>* second)
{
    const int rows = a.d[1].n, n = a.d[2].n, lines = planes * lines_of_plane(a);
    first_along_lines<true>(a.d[2], lines, a.twiddle[2], first,
                            [=](int line, int i)
                            {
                                const PlaneLine at = line_in_plane<MANY>(a, line);
                                const R*        x  = in + at.row * n + i;
                                return Vec2<R>{x[0], 2 * at.line + 1 < rows ? x[n] : R(0)};
                            });
    __syncthreads();
    second_along_lines<true>(a.d[2], lines, first,
                             [=](int line, int k, const Vec2<R>& v) { second[line * n + k] = v; });
    __syncthreads();
    part_lines<MANY>(a, planes, second, first);
    __syncthreads();
    first_across<true, MANY>(a.d[1], planes, a.nz, a.twiddle[1], first, second);
    __syncthreads();
}

/* Planes of one coefficient from what the first step of the inverse in the second dimension leaves in `first`. */
template <bool MANY, class R>
static __device__ inline void
planes_from_spectrum(const FftArgs<R>& a, int planes, R* out, Vec2<R>* first, Vec2<R>* second)
{
    const int rows = a.d[1].n, n = a.d[2].n, lines = planes * lines_of_plane(a);
    second_across<false, MANY>(a.d[1], planes, a.nz, first, to_array(second, a.d[1].n1 * a.nz));
    __syncthreads();
    join_lines<MANY>(a, planes, second, first);
    __syncthreads();
    first_along_lines<false>(a.d[2], lines, a.twiddle[2], second, [=](int line, int i) { return first[line * n + i]; });
    __syncthreads();
    /* written through shared memory: neighbouring threads have elements n1 apart */
    R* real = reinterpret_cast<R*>(first);
    second_along_lines<false>(a.d[2], lines, second,
                              [=](int line, int k, const Vec2<R>& v)
                              {
                                  const PlaneLine at   = line_in_plane<MANY>(a, line);
                                  real[at.row * n + k] = v.x;
                                  if (!MANY || 2 * at.line + 1 < rows)
                                  {
                                      real[(at.row + 1) * n + k] = v.y;
                                  }
                              });
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < planes * rows * n; i += static_cast<int>(blockDim.x))
    {
        out[i] = real[i];
    }
}

/* Each block transforms one plane of one coefficient, in the last two dimensions. SHARED: the columns of other devices
 * are stored there. */
template <bool SHARED, class R>
__global__ void __launch_bounds__(128) planes_forward(FftArgs<R> a, const __grid_constant__ Spectra spectra)
{
    extern __shared__ char shared[];
    __shared__ Owners<R> owners;
    Vec2<R>*             first  = reinterpret_cast<Vec2<R>*>(shared);
    Vec2<R>*             second = first + plane_words(a);
    const int            rows = a.d[1].n, n = a.d[2].n, step = a.d[1].n1 * a.nz;
    const size_t         out = plane_of_block(a) * static_cast<size_t>(rows * a.nz);
    if (SHARED)
    {
        find_owners(spectra, spectra.end_column, &owners);
    }
    wait_for_previous();
    planes_to_spectrum<false>(a, 1, a.field + plane_of_block(a) * static_cast<size_t>(rows * n), first, second);
    if constexpr (SHARED)
    {
        const Owners<R>* all = &owners;
        second_across<true, false>(a.d[1], 1, a.nz, second,
                                   [=](int task)
                                   {
                                       return [=](int k, const Vec2<R>& v)
                                       {
                                           const int column                                         = task + k * step;
                                           all->array_of(column)[out + static_cast<size_t>(column)] = v;
                                       };
                                   });
    }
    else
    {
        second_across<true, false>(a.d[1], 1, a.nz, second, to_array(a.spectrum + out, step));
    }
}

template <class R>
__global__ void __launch_bounds__(128) planes_backward(FftArgs<R> a)
{
    extern __shared__ char shared[];
    Vec2<R>*               first  = reinterpret_cast<Vec2<R>*>(shared);
    Vec2<R>*               second = first + plane_words(a);
    const int              rows = a.d[1].n, n = a.d[2].n;
    const Vec2<R>*         in = a.spectrum + plane_of_block(a) * static_cast<size_t>(rows * a.nz);
    wait_for_previous();
    first_across<false, false>(a.d[1], 1, a.nz, a.twiddle[1], in, first);
    __syncthreads();
    planes_from_spectrum<false>(a, 1, a.field + plane_of_block(a) * static_cast<size_t>(rows * n), first, second);
}

/* Each block transforms the grid of one coefficient, in all dimensions. */
template <class R>
__global__ void __launch_bounds__(c_mostThreads) grid_forward(FftArgs<R> a)
{
    extern __shared__ char shared[];
    const int              planes = a.d[0].n, rows = a.d[1].n, width = rows * a.nz;
    Vec2<R>*               first  = reinterpret_cast<Vec2<R>*>(shared);
    Vec2<R>*               second = first + planes * plane_words(a);
    Vec2<R>*               out    = a.spectrum + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(planes * width);
    wait_for_previous();
    planes_to_spectrum<true>(a, planes,
                             a.field + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(planes * rows * a.d[2].n),
                             first, second);
    second_across<true, true>(a.d[1], planes, a.nz, second, to_array(first, a.d[1].n1 * a.nz));
    __syncthreads();
    first_across<true, false>(a.d[0], 1, width, a.twiddle[0], first, second);
    __syncthreads();
    second_across<true, false>(a.d[0], 1, width, second, to_array(out, a.d[0].n1 * width));
}

template <class R>
__global__ void __launch_bounds__(c_mostThreads) grid_backward(FftArgs<R> a)
{
    extern __shared__ char shared[];
    const int              planes = a.d[0].n, rows = a.d[1].n, width = rows * a.nz;
    Vec2<R>*               first  = reinterpret_cast<Vec2<R>*>(shared);
    Vec2<R>*               second = first + planes * plane_words(a);
    const Vec2<R>*         in     = a.spectrum + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(planes * width);
    wait_for_previous();
    first_across<false, false>(a.d[0], 1, width, a.twiddle[0], in, first);
    __syncthreads();
    second_across<false, false>(a.d[0], 1, width, first, to_array(second, a.d[0].n1 * width));
    __syncthreads();
    first_across<false, true>(a.d[1], planes, a.nz, a.twiddle[1], second, first);
    __syncthreads();
    planes_from_spectrum<true>(
        a, planes, a.field + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(planes * rows * a.d[2].n), first,
        second);
}

/* The first dimension, in place. Each lane has one of 32 neighbouring lines; the tasks of these are divided among the
 * warps. SHARED: the layers of other devices are stored there. */
template <bool FORWARD, bool SHARED, class R>
__global__ void first_dimension(FftArgs<R> a, const __grid_constant__ Spectra spectra)
{
    extern __shared__ char shared[];
    __shared__ Owners<R> owners;
    const Length         d    = a.d[0];
    const int            lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int            warps = static_cast<int>(blockDim.x / 32), columns = a.d[1].n * a.nz;
    const int            column = a.range.first_column + static_cast<int>(blockIdx.x) * 32 + lane;
    const bool           inside = column < a.range.end_column;
    const size_t         stride = static_cast<size_t>(columns);
    Vec2<R>*             work   = reinterpret_cast<Vec2<R>*>(shared) + lane;
    const size_t         place =
        static_cast<size_t>(blockIdx.y) * static_cast<size_t>(d.n) * stride + (inside ? column : a.range.first_column);
    Vec2<R>*         line    = a.spectrum + place;
    const Vec2<R>*   twiddle = a.twiddle[0];
    const Owners<R>* all     = &owners;
    if (SHARED)
    {
        find_owners(spectra, spectra.end_layer, &owners);
    }
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
                                                    const int layer = k1 + d.n1 * k;
                                                    Vec2<R>*  to    = SHARED ? all->array_of(layer) + place : line;
                                                    to[static_cast<size_t>(layer) * stride] = v;
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
static FftArgs<R> make_args(const gmxfmm_plan* plan, const FarRange& far, void* spectrum)
{
    FftArgs<R>     a;
    const Vec2<R>* twiddle = static_cast<const Vec2<R>*>(far.twiddles);
    for (int i = 0; i < 3; i++)
    {
        a.d[i]       = make_length(fmm_convolved(plan)->n[i]);
        a.twiddle[i] = twiddle;
        twiddle += a.d[i].n;
    }
    a.nz            = a.d[2].n / 2 + 1;
    a.num_coef      = plan->device->far.num_coef;
    a.inverse_lines = 1.0f / static_cast<float>(lines_of_plane(a));
    a.field         = static_cast<R*>(far.field);
    a.spectrum      = static_cast<Vec2<R>*>(spectrum);
    a.range         = far.range;
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
    fmm_device*      d          = plan->device;
    const FftArgs<R> a          = make_args<R>(plan, far_range(plan, 0), d->far.cells.spectrum.memory);
    const size_t     room       = static_cast<size_t>(d->limits.max_shared);
    d->far.cells.own_transforms = a.d[0].n1 > 0 && a.d[1].n1 > 0 && a.d[2].n1 > 0 && plane_bytes(a) <= room;
    d->far.cells.whole_grids    = d->far.cells.own_transforms && num_devices(d) == 1 &&
                               fmm_convolved(plan)->num_cells <= c_mostWhole &&
                               static_cast<size_t>(a.d[0].n) * plane_bytes(a) <= room;
    if (!d->far.cells.own_transforms)
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
    FMM_TRY(fmm_device_reserve(plan, &d->far.cells.twiddles, w.size() * sizeof(Vec2<R>)));
    FMM_TRY(fmm_cuda_upload(plan, d->far.cells.twiddles.memory, w.data(), w.size() * sizeof(Vec2<R>)));
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_fft_prepare(gmxfmm_plan* plan)
{
    return is_double(plan) ? prepare<double>(plan) : prepare<float>(plan);
}

template <class R, class C>
static cufftResult execute(const fmm_device* d,
                           bool              forward,
                           void*             spectrum,
                           cufftResult (*r2c)(cufftHandle, R*, C*),
                           cufftResult (*c2r)(cufftHandle, C*, R*))
{
    const DeviceConvolution& c = d->far.cells;
    return forward ? r2c(c.forward, c.field.as<R>(), static_cast<C*>(spectrum))
                   : c2r(c.backward, static_cast<C*>(spectrum), c.field.as<R>());
}

/* By cuFFT, which has no part for a range: all of the transform, on the first device. */
static gmxfmm_status transform(gmxfmm_plan* plan, bool forward, void* spectrum, cudaStream_t stream)
{
    const fmm_device* d      = plan->device;
    cufftResult       result = cufftSetStream(forward ? d->far.cells.forward : d->far.cells.backward, stream);
    if (result == CUFFT_SUCCESS)
    {
        result = is_double(plan)
                     ? execute<cufftDoubleReal, cufftDoubleComplex>(d, forward, spectrum, cufftExecD2Z, cufftExecZ2D)
                     : execute<cufftReal, cufftComplex>(d, forward, spectrum, cufftExecR2C, cufftExecC2R);
    }
    return result == CUFFT_SUCCESS
               ? GMXFMM_OK
               : fmm_fail(plan, GMXFMM_ERROR_DEVICE, "a transform failed (cuFFT error %d)", static_cast<int>(result));
}

template <class R>
static gmxfmm_status
planes(gmxfmm_plan* plan, const FarRange& far, bool forward, const Spectra& spectra, bool chained, cudaStream_t stream)
{
    const FftArgs<R> a       = make_args<R>(plan, far, spectra.array[spectra.own]);
    const size_t     bytes   = plane_bytes(a);
    const unsigned   threads = a.d[1].n * a.d[2].n < c_smallPlane ? 64 : 128;
    const int        layers  = a.range.end_layer - a.range.first_layer;
    const dim3       blocks(static_cast<unsigned>(layers), static_cast<unsigned>(a.num_coef));
    if (layers == 0)
    {
        return GMXFMM_OK;
    }
    if (!forward)
    {
        FMM_CUDA(plan, (allow_shared(far.allowed, planes_backward<R>)));
        FMM_CUDA(plan, launch_next(chained && far.has_chains, planes_backward<R>, blocks, threads, bytes, stream, a));
        return GMXFMM_OK;
    }
    const auto kernel = far.shared ? planes_forward<true, R> : planes_forward<false, R>;
    FMM_CUDA(plan, (allow_shared(far.allowed, kernel)));
    FMM_CUDA(plan, launch_next(chained && far.has_chains, kernel, blocks, threads, bytes, stream, a, spectra));
    return GMXFMM_OK;
}

/* All dimensions at once. */
template <class R>
static gmxfmm_status
grids(gmxfmm_plan* plan, const FarRange& far, bool forward, void* spectrum, bool chained, cudaStream_t stream)
{
    const FftArgs<R> a     = make_args<R>(plan, far, spectrum);
    const size_t     bytes = static_cast<size_t>(a.d[0].n) * plane_bytes(a);
    const int        tasks = a.d[0].n * a.d[1].n * a.nz / 3 + 1, most = c_mostThreads;
    const unsigned   threads = static_cast<unsigned>(tasks < most ? (tasks + 31) / 32 * 32 : most);
    const auto       kernel  = forward ? grid_forward<R> : grid_backward<R>;
    FMM_CUDA(plan, (allow_shared(far.allowed, kernel)));
    FMM_CUDA(plan, launch_next(chained && far.has_chains, kernel, static_cast<unsigned>(a.num_coef), threads, bytes,
                               stream, a));
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_planes(
    gmxfmm_plan* plan, const FarRange& far, bool forward, const Spectra& spectra, bool chained, cudaStream_t stream)
{
    if (!plan->device->far.cells.own_transforms)
    {
        return transform(plan, forward, spectra.array[spectra.own], stream);
    }
    if (plan->device->far.cells.whole_grids)
    {
        return is_double(plan) ? grids<double>(plan, far, forward, spectra.array[spectra.own], chained, stream)
                               : grids<float>(plan, far, forward, spectra.array[spectra.own], chained, stream);
    }
    return is_double(plan) ? planes<double>(plan, far, forward, spectra, chained, stream)
                           : planes<float>(plan, far, forward, spectra, chained, stream);
}

template <class R>
static gmxfmm_status
lines(gmxfmm_plan* plan, const FarRange& far, bool forward, const Spectra& spectra, bool chained, cudaStream_t stream)
{
    const FftArgs<R> a   = make_args<R>(plan, far, spectra.array[spectra.own]);
    const int        few = a.d[0].n1 < a.d[0].n2 ? a.d[0].n1 : a.d[0].n2, many = a.d[0].n / few;
    const unsigned   threads = static_cast<unsigned>(32 * (few > 2 ? few : many));
    const int        columns = a.range.end_column - a.range.first_column;
    const dim3       blocks(static_cast<unsigned>(blocks_for(columns, 32)), static_cast<unsigned>(a.num_coef));
    const size_t     bytes  = 32 * static_cast<size_t>(a.d[0].n) * sizeof(Vec2<R>);
    const auto       kernel = forward      ? first_dimension<true, false, R>
                              : far.shared ? first_dimension<false, true, R>
                                           : first_dimension<false, false, R>;
    if (columns == 0)
    {
        return GMXFMM_OK;
    }
    FMM_CUDA(plan, (allow_shared(far.allowed, kernel)));
    FMM_CUDA(plan, launch_next(chained && far.has_chains, kernel, blocks, threads, bytes, stream, a, spectra));
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_lines(
    gmxfmm_plan* plan, const FarRange& far, bool forward, const Spectra& spectra, bool chained, cudaStream_t stream)
{
    if (!plan->device->far.cells.own_transforms || plan->device->far.cells.whole_grids)
    {
        return GMXFMM_OK;
    }
    return is_double(plan) ? lines<double>(plan, far, forward, spectra, chained, stream)
                           : lines<float>(plan, far, forward, spectra, chained, stream);
}

gmxfmm_status fmm_cuda_find_chains(gmxfmm_plan* plan)
{
    cudaFuncAttributes attributes;
    int                driver   = 0;
    const int          captures = 12030; /* the first CUDA version whose graphs can capture such launches */
    FMM_CUDA(plan, cudaDriverGetVersion(&driver));
    FMM_CUDA(plan, (cudaFuncGetAttributes(&attributes, planes_forward<false, float>)));
    /* in code that was compiled for earlier devices wait_for_previous does nothing */
    plan->device->has_chains = plan->device->limits.capability >= 90 && attributes.ptxVersion >= 90 &&
                               driver >= captures && CUDART_VERSION >= captures;
    return GMXFMM_OK;
}
