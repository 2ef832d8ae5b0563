/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Spectra of the lattice sums (THEORY section 4), computed when the shape of the box changes. The lattice vectors of
 * the real-space part are few and near the origin. Terms are computed for a block of them, which contains the near
 * vectors and all within r_max, and their transform over the grid is summed by its definition, one direction after the
 * other. The reciprocal part at a frequency is the sum over the wave vectors congruent to it. All that depends on the
 * shape is passed in kernel arguments: enqueued kernels keep their own, and a new shape need not wait for them.
 */
#define HARM_T double
#define HARM_R double
#include "cuda/convolution/convolution.h"
#include "cuda/runtime/chain.h"
#include "cuda/convolution/spectrum.h"
#include "cuda/runtime/recording.h"

#include "fmm/geometry/lattice_slab.h"
#include "fmm/geometry/lattice_weights.h"

#include <algorithm>

enum
{
    c_threads   = 128,
    c_maxDegree = 2 * FMM_OCTREE_MAX_ROTATION_ORDER + 2,
    /* real-space part */
    c_realThreads = 256,
    c_wide        = 8, /* frequencies of the last direction of a block */
    c_planes      = 3, /* planes of lattice vectors that a block transforms at once */
    c_fewRows     = 4, /* a block gets fewer frequencies of the last direction rather than fewer rows than this */
    c_columns     = 4, /* frequencies of the first direction, and their mirror images, in a thread */
    /* reciprocal part */
    c_lanes     = 32,
    c_waves     = 32, /* wave vectors in shared memory at once */
    c_mostWarps = 10,
    /* slabs */
    c_slabWaves = 16, /* as c_waves */
    c_slabBatch = 8   /* numbers of a column that a thread reads before it writes one */
};

/* Truncation relative to the largest terms: below the rounding of the step. */
static const double c_toleranceSingle = 1e-8, c_toleranceDouble = 1e-16;

/* Elements that vanish by symmetry come out as powers of rounding errors; they are set to 0. */
template <class R>
static __device__ inline R flushed(R x)
{
    return fabs(x) < R(1e-30) ? R(0) : x;
}

/* Lattice vectors k with k[0] = 0 .. range[0] and k[d] = -range[d] .. range[d]; those with k[0] < 0 follow by
 * inversion. */
struct LatticeBlock
{
    int range[3];

    __host__ __device__ int width(int d) const
    {
        return 2 * range[d] + 1;
    }
    __host__ __device__ int num() const
    {
        return (range[0] + 1) * width(1) * width(2);
    }
};

struct RealArgs
{
    LatticeBlock block;
    double       cell[9], alpha;
    fmm_sum      sum;
    int          degree, first_m, near_reach;
    const short* near_lookup;
};

/* fmm_near_index of cells.c */
static __device__ bool is_near(const RealArgs& a, const int* k)
{
    const int r = a.near_reach, w = 2 * r + 1;
    return abs(k[0]) <= r && abs(k[1]) <= r && abs(k[2]) <= r &&
           a.near_lookup[((k[0] + r) * w + k[1] + r) * w + k[2] + r] >= 0;
}

/* Real-space part of columns m from first_m on at the lattice vectors of the block: table[coefficient][vector]. A
 * thread has one column of one vector; see fmm_real_block of src/fmm/geometry/lattice_real.c. */
template <class R>
__global__ void real_table(RealArgs a, R* table)
{
    const int v = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), num = a.block.num();
    const int m = a.first_m + static_cast<int>(blockIdx.y), length = a.degree + 1 - m;
    if (v >= num)
    {
        return;
    }
    const int    k[3]   = {v / (a.block.width(1) * a.block.width(2)),
                           v / a.block.width(2) % a.block.width(1) - a.block.range[1],
                           v % a.block.width(2) - a.block.range[2]};
    const size_t stride = static_cast<size_t>(num);
    double       r[3], weight[c_maxDegree + 1], re = 1, im = 0, re_below = 0, im_below = 0;
    for (int d = 0; d < 3; d++)
    {
        r[d] = k[0] * a.cell[d] + k[1] * a.cell[3 + d] + k[2] * a.cell[6 + d];
    }
    const double r2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    fmm_vector_weights(a.sum, a.alpha, a.degree, is_near(a, k), r2, weight);
    double factor = r2 == 0 ? 2 : 1; /* the origin's weight is given for one half; then times (2m)!, (n-m)!(n+m)! */
    for (int i = 1; i <= m; i++)
    {
        harm_next_diagonal(i, r[0], r[1], &re, &im);
        factor *= harm_next_diagonal_factor(i);
    }
    table += static_cast<size_t>(harm_column(a.degree, m) - harm_column(a.degree, a.first_m)) * stride + v;
    for (int n = m; n <= a.degree; n++, table += stride)
    {
        if (n > m)
        {
            harm_next_degree(n, m, r[2], r2, &re, &im, &re_below, &im_below);
        }
        const double scale = weight[n] * factor;
        *table             = static_cast<R>(re * scale);
        if (m > 0)
        {
            table[static_cast<size_t>(length) * stride] = static_cast<R>(im * scale);
        }
        factor *= harm_next_degree_factor(n, m);
    }
}

/* What a block of add_real computes at once; this determines the size of its shared memory. */
struct RealTile
{
    int wide;   /* frequencies of the last direction */
    int rows;   /* frequencies of the second one, and as many mirror images */
    int planes; /* of lattice vectors */
};

template <class R>
struct SpectrumArgs
{
    LatticeBlock block;
    RealTile     tile;
    int          degree, first_m, n[3], num_freq, add; /* add: to the values in out */
    double       scale;
    const R*     table;
    Vec2<R>*     out;
};

/* Shared memory for the roots of unity, and for lattice vectors with one and with two directions transformed. */
template <class R>
static size_t real_shared(const int* n, const LatticeBlock& b, const RealTile& t)
{
    const size_t wide = static_cast<size_t>(t.wide);
    return sizeof(Vec2<R>) * (static_cast<size_t>(n[0]) + n[1] + n[2]) +
           sizeof(Vec2<R>) * t.planes * 2 * b.width(1) * wide +
           sizeof(Vec2<R>) * (static_cast<size_t>(b.range[0]) + 1) * 4 * t.rows * wide;
}

/* sum_c v_c e^(-i c phi), c = -range .. range, phi = 2 pi f / n, f < n; root: the n roots of unity. */
template <class R>
static __device__ inline Vec2<R> transform_row(int n, int f, int range, const R* v, const Vec2<R>* root)
{
    Vec2<R> sum = {v[0], 0};
    for (int c = 1, at = f; c <= range; c++)
    {
        const R up = v[c], down = v[-c];
        sum.x += root[at].x * (up + down);
        sum.y -= root[at].y * (up - down);
        at += f;
        at -= at >= n ? n : 0;
    }
    return sum;
}

/* The same of complex numbers: even + odd for phi, even - odd for -phi. */
template <class R>
static __device__ inline void transform_column(
    int n, int f, int range, const Vec2<R>* v, int stride, const Vec2<R>* root, Vec2<R>* even, Vec2<R>* odd)
{
    *even = v[0];
    *odd  = {0, 0};
    for (int b = 1, at = f; b <= range; b++)
    {
        const Vec2<R> up = v[b * stride], down = v[-b * stride], w = root[at];
        even->x += w.x * (up.x + down.x);
        even->y += w.x * (up.y + down.y);
        odd->x += w.y * (up.y - down.y);
        odd->y -= w.y * (up.x - down.x);
        at += f;
        at -= at >= n ? n : 0;
    }
}

/* Adds the real-space part of a coefficient to its spectrum, for a tile of frequencies. By parity, n even, the sum over
 * all lattice vectors is that over planes k[0] = a >= 0 of Re(e^(-i a phi) g_a), twice for a > 0, and -Im for odd n;
 * with (u, v) = g_a or, n odd, i g_a, both are u cos(a phi) + v sin(a phi), from which both phi and -phi follow. The
 * sign is that of i^n, the phase that is omitted. */
template <class R>
__global__ void __launch_bounds__(c_realThreads) add_real(SpectrumArgs<R> a)
{
    extern __shared__ char shared[];
    const int              thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const int width = a.block.width(1), num_z = a.n[2] / 2 + 1, num_y = a.n[1] / 2 + 1, num_x = a.n[0] / 2 + 1;
    Vec2<R>*  root0   = reinterpret_cast<Vec2<R>*>(shared);
    Vec2<R>*  root1   = root0 + a.n[0];
    Vec2<R>*  root2   = root1 + a.n[1];
    Vec2<R>*  h       = root2 + a.n[2]; /* [plane][part][k[1]][frequency z] */
    Vec2<R>*  g       = reinterpret_cast<Vec2<R>*>(h + a.tile.planes * 2 * width * a.tile.wide); /* [a][part][y][z] */
    const int tiles   = (num_z + a.tile.wide - 1) / a.tile.wide;
    const int first_z = static_cast<int>(blockIdx.x) % tiles * a.tile.wide, z_here = min(a.tile.wide, num_z - first_z);
    const int first_y = static_cast<int>(blockIdx.x) / tiles * a.tile.rows, y_here = min(a.tile.rows, num_y - first_y);
    int       m = a.first_m, n = static_cast<int>(blockIdx.y) + m;
    while (n > a.degree)
    {
        m++;
        n += m - a.degree - 1; /* the column of m has degree + 1 - m degrees from m on */
    }
    const size_t num_vectors = static_cast<size_t>(a.block.num());
    const int    parts = m > 0 ? 2 : 1, column = harm_column(a.degree, m) - harm_column(a.degree, a.first_m) + n - m;
    for (int d = 0, first = 0; d < 3; first += a.n[d], d++)
    {
        for (int i = thread; i < a.n[d]; i += threads)
        {
            double re, im;
            sincospi(2.0 * i / a.n[d], &im, &re);
            root0[first + i] = {static_cast<R>(re), static_cast<R>(im)};
        }
    }
    wait_for_previous();
    __syncthreads();
    for (int first = 0; first <= a.block.range[0]; first += a.tile.planes)
    {
        const int planes = min(a.tile.planes, a.block.range[0] + 1 - first);
        for (int item = thread; item < planes * parts * width * z_here; item += threads)
        {
            const int z = item % z_here, b = item / z_here % width, part = item / (z_here * width) % parts,
                      plane = item / (z_here * width * parts);
            const R* row    = a.table + static_cast<size_t>(column + part * (a.degree + 1 - m)) * num_vectors +
                           static_cast<size_t>(((first + plane) * width + b) * a.block.width(2) + a.block.range[2]);
            h[((plane * 2 + part) * width + b) * a.tile.wide + z] =
                transform_row(a.n[2], first_z + z, a.block.range[2], row, root2);
        }
        __syncthreads();
        for (int item = thread; item < planes * parts * y_here * z_here; item += threads)
        {
            const int z = item % z_here, y = item / z_here % y_here, part = item / (z_here * y_here) % parts,
                      plane = item / (z_here * y_here * parts);
            Vec2<R> even, odd;
            transform_column(a.n[1], first_y + y, a.block.range[1],
                             h + ((plane * 2 + part) * width + a.block.range[1]) * a.tile.wide + z, a.tile.wide, root1,
                             &even, &odd);
            const R       w  = (first + plane > 0 ? 2 : 1) * static_cast<R>(n & 2 ? -a.scale : a.scale);
            const Vec2<R> up = {even.x + odd.x, even.y + odd.y}, down = {even.x - odd.x, even.y - odd.y};
            Vec2<R>*      to              = g + (((first + plane) * 2 + part) * 2 * a.tile.rows + y) * a.tile.wide + z;
            *to                           = {w * (n & 1 ? -up.y : up.x), w * (n & 1 ? up.x : up.y)};
            to[a.tile.rows * a.tile.wide] = {w * (n & 1 ? -down.y : down.x), w * (n & 1 ? down.x : down.y)};
        }
        __syncthreads();
    }
    Vec2<R>* out = a.out + static_cast<size_t>(pair_index(a.degree, n, m)) * static_cast<size_t>(a.num_freq);
    for (int item = thread; item < (num_x + c_columns - 1) / c_columns * 2 * y_here * z_here; item += threads)
    {
        const int z = item % z_here, slot = item / z_here % (2 * y_here), x0 = item / (z_here * 2 * y_here) * c_columns;
        const bool mirrored = slot >= y_here;
        const int  y = mirrored ? slot - y_here : slot, fy = first_y + y, fz = first_z + z;
        if (mirrored && (fy == 0 || 2 * fy == a.n[1]))
        {
            continue; /* it is its own mirror image */
        }
        const Vec2<R>* from = g + ((mirrored ? a.tile.rows : 0) + y) * a.tile.wide + z;
        const int      part = 2 * a.tile.rows * a.tile.wide;
        R              even[2][c_columns], odd[2][c_columns];
        int            at[c_columns];
#pragma unroll
        for (int j = 0; j < c_columns; j++)
        {
            even[0][j] = even[1][j] = odd[0][j] = odd[1][j] = 0;
            at[j]                                           = 0;
        }
        for (int plane = 0; plane <= a.block.range[0]; plane++, from += 2 * part)
        {
            const Vec2<R> re = from[0], im = m > 0 ? from[part] : Vec2<R>{0, 0};
            const R       u[2] = {re.x, im.x}, v[2] = {re.y, im.y};
#pragma unroll
            for (int j = 0; j < c_columns; j++)
            {
                const Vec2<R> w = root0[at[j]];
#pragma unroll
                for (int i = 0; i < 2; i++)
                {
                    even[i][j] += w.x * u[i];
                    odd[i][j] += w.y * v[i];
                }
                at[j] += min(x0 + j, num_x - 1);
                at[j] -= at[j] >= a.n[0] ? a.n[0] : 0;
            }
        }
        const auto store = [&](int fx, R x, R y_part)
        {
            Vec2<R>* to = out + (static_cast<size_t>(fx) * a.n[1] + (mirrored ? a.n[1] - fy : fy)) * num_z + fz;
            *to         = {flushed(a.add ? x + to->x : x), flushed(a.add ? y_part + to->y : y_part)};
        };
#pragma unroll
        for (int j = 0; j < c_columns; j++)
        {
            const int fx = x0 + j;
            if (fx < num_x)
            {
                store(fx, even[0][j] + odd[0][j], even[1][j] + odd[1][j]);
            }
            if (fx < num_x && fx > 0 && 2 * fx != a.n[0])
            {
                store(a.n[0] - fx, even[0][j] - odd[0][j], even[1][j] - odd[1][j]);
            }
        }
    }
}

struct ReciprocalArgs
{
    fmm_sum sum;
    int     degree, num_freq, n[3], range[3];
    double  dual[9]; /* k_e = sum_d kappa_d dual[3 e + d] */
    double  alpha, k_max, cell_volume, background, scale;
};

/* Signed frequency nearest to zero. */
static __device__ int centred(int f, int n)
{
    return 2 * f <= n ? f : f - n;
}

/* Wave vector number t of those congruent to kappa; returns its square. */
static __device__ double wave_vector(const ReciprocalArgs& a, const double* kappa, int t, double* k)
{
    const int    row = 2 * a.range[2] + 1, rows = 2 * a.range[1] + 1;
    const double c[3] = {kappa[0] + (t / (row * rows) - a.range[0]), kappa[1] + (t / row % rows - a.range[1]),
                         kappa[2] + (t % row - a.range[2])};
    for (int e = 0; e < 3; e++)
    {
        k[e] = c[0] * a.dual[3 * e] + c[1] * a.dual[3 * e + 1] + c[2] * a.dual[3 * e + 2];
    }
    return k[0] * k[0] + k[1] * k[1] + k[2] * k[2];
}

/* Factors of the recurrence (1) and, from n - 1 to n, of THEORY (14), stored at pair_index. */
template <class T>
struct ReciprocalTables
{
    double* ratio;
    T *     z, *r2;
};

template <class T>
static __device__ void fill_tables(int degree, const ReciprocalTables<T>& t)
{
    const int lane = static_cast<int>(threadIdx.x % c_lanes), warps = static_cast<int>(blockDim.x / c_lanes);
    for (int m = static_cast<int>(threadIdx.x / c_lanes); m <= degree; m += warps)
    {
        for (int n = m + lane; n <= degree; n += c_lanes)
        {
            const int    i       = pair_index(degree, n, m);
            const double inverse = n > m ? harm_inverse(n, m) : 0;
            t.r2[i]              = static_cast<T>(inverse);
            t.z[i]               = static_cast<T>((2 * n - 1) * inverse);
            t.ratio[i]           = n > m ? static_cast<double>((n - m) * (n + m)) / (2 * n - 1) : 1;
        }
    }
}

/* Arithmetic of wave vectors: that of the plan, but double where powers would leave the range of single precision. */
template <class R, int MOST>
struct WaveType
{
    typedef R type;
};

template <>
struct WaveType<float, c_maxDegree + 1>
{
    typedef double type;
};

/* Adds column m, of `length` degrees, of a wave vector (x, y, z) with weight k.w, without the factor 1/(2^m m!), which
 * cancels with (2m)!/(2m-1)!! of (14). */
template <int MOST, class T>
static __device__ inline void add_wave(int m, int length, const Vec4<T>& k, const T* z, const T* r2, T* re, T* im)
{
    const T k2 = k.x * k.x + k.y * k.y + k.z * k.z;
    T       u = k.w, v = 0, u_below = 0, v_below = 0;
    for (int i = 0; i < m; i++)
    {
        const T t = u * k.x - v * k.y;
        v         = u * k.y + v * k.x;
        u         = t;
    }
    re[0] += u;
    im[0] += v;
#pragma unroll
    for (int i = 1; i < MOST; i++)
    {
        if (i >= length)
        {
            break;
        }
        const T a = k.z * z[i], b = k2 * r2[i];
        const T u_next = a * u - b * u_below, v_next = a * v - b * v_below;
        u_below = u;
        v_below = v;
        u       = u_next;
        v       = v_next;
        re[i] += u;
        im[i] += v;
    }
}

/* Bytes of shared memory for c_waves wave vectors of each lane, with their weights, and for the tables. */
template <class T>
static size_t reciprocal_shared(int degree)
{
    const size_t num = static_cast<size_t>(num_pairs(degree));
    return sizeof(double) * num + sizeof(Vec4<T>) * c_waves * c_lanes + sizeof(T) * 2 * num;
}

/* The reciprocal part, THEORY (14). Each lane has a frequency, and the columns m, of at most MOST degrees, are divided
 * among the warps; wave vectors and their weights are computed once for all warps. */
template <class R, int MOST>
__global__ void __launch_bounds__(c_lanes* c_mostWarps) reciprocal_part(ReciprocalArgs a, Vec2<R>* out)
{
    typedef typename WaveType<R, MOST>::type T;
    extern __shared__ char                   shared[];
    __shared__ int                           inside[c_waves]; /* whether the wave vector is within k_max for any lane */
    const int                                num    = num_pairs(a.degree);
    Vec4<T>*                                 wave   = reinterpret_cast<Vec4<T>*>(shared);
    double*                                  ratio  = reinterpret_cast<double*>(wave + c_waves * c_lanes);
    T*                                       z      = reinterpret_cast<T*>(ratio + num);
    const ReciprocalTables<T>                tables = {ratio, z, z + num};
    const int    lane = static_cast<int>(threadIdx.x % c_lanes), warp = static_cast<int>(threadIdx.x / c_lanes);
    const int    warps = static_cast<int>(blockDim.x / c_lanes), f = static_cast<int>(blockIdx.x) * c_lanes + lane;
    const int    nz = a.n[2] / 2 + 1, held = min(f, a.num_freq - 1);
    const int    waves    = (2 * a.range[0] + 1) * (2 * a.range[1] + 1) * (2 * a.range[2] + 1);
    const double kappa[3] = {static_cast<double>(centred(held / nz / a.n[1], a.n[0])) / a.n[0],
                             static_cast<double>(centred(held / nz % a.n[1], a.n[1])) / a.n[1],
                             static_cast<double>(centred(held % nz, a.n[2])) / a.n[2]};
    fill_tables(a.degree, tables);
    for (int round = 0; round * warps <= a.degree; round++)
    {
        /* the order of warps alternates, so that each has long and short columns */
        const int m = round * warps + (round % 2 != 0 ? warps - 1 - warp : warp), length = a.degree + 1 - m;
        T         re[MOST], im[MOST];
#pragma unroll
        for (int i = 0; i < MOST; i++)
        {
            re[i] = im[i] = 0;
        }
        for (int first = 0; first < waves; first += c_waves)
        {
            const int here = min(static_cast<int>(c_waves), waves - first);
            if (round == 0 || waves > c_waves)
            {
                __syncthreads(); /* all warps have read the wave vectors before */
                for (int t = warp; t < here; t += warps)
                {
                    double       k[3];
                    const double k2          = wave_vector(a, kappa, first + t, k);
                    const bool   use         = k2 > 0 && k2 <= a.k_max * a.k_max;
                    const double weight      = use ? fmm_reciprocal_weight(a.sum, k2, a.alpha, a.cell_volume,
                                                                           exp(-k2 / (4 * a.alpha * a.alpha)))
                                                   : 0;
                    wave[t * c_lanes + lane] = {static_cast<T>(k[0]), static_cast<T>(k[1]), static_cast<T>(k[2]),
                                                static_cast<T>(weight)};
                    const int any            = __any_sync(0xffffffffu, use);
                    if (lane == 0)
                    {
                        inside[t] = any;
                    }
                }
                __syncthreads();
            }
            for (int t = 0; t < here && length > 0; t++)
            {
                if (inside[t] != 0)
                {
                    const int at = pair_index(a.degree, m, m);
                    add_wave<MOST>(m, length, wave[t * c_lanes + lane], tables.z + at, tables.r2 + at, re, im);
                }
            }
        }
        if (round == 0)
        {
            wait_for_previous();
        }
        double factor = a.scale; /* times that of n */
#pragma unroll
        for (int i = 0; i < MOST; i++)
        {
            if (i >= length)
            {
                break;
            }
            const int n = m + i, pair = pair_index(a.degree, n, m);
            factor *= tables.ratio[pair];
            const double scale      = a.sum == FMM_SUM_S ? factor : n > 0 ? factor * (2 * n - 1) : 0;
            const double background = n == 0 && f == 0 ? a.background : 0;
            if (f < a.num_freq)
            {
                out[static_cast<size_t>(pair) * static_cast<size_t>(a.num_freq) + f] = {
                    static_cast<R>(static_cast<double>(re[i]) * scale - background),
                    static_cast<R>(m > 0 ? static_cast<double>(im[i]) * scale : 0)};
            }
        }
    }
}

struct SlabArgs
{
    fmm_slab_grid grid;
    fmm_sum       sum;
    int           degree, num_freq, range[2];
    double        weight;
};

/* Adds a column of length numbers at a frequency; re and im as fmm_slab_add_column has them. */
template <class R>
static __device__ inline void
add_to_spectrum(const SlabArgs& a, int m, int length, const double* re, const double* im, Vec2<R>* out)
{
    const size_t stride = static_cast<size_t>(a.num_freq);
    out += static_cast<size_t>(pair_index(a.degree, m, m)) * stride;
    for (int first = 0; first < length; first += c_slabBatch)
    {
        Vec2<R> sum[c_slabBatch];
#pragma unroll
        for (int i = 0; i < c_slabBatch; i++)
        {
            if (first + i < length)
            {
                sum[i] = out[static_cast<size_t>(first + i) * stride];
            }
        }
#pragma unroll
        for (int i = 0; i < c_slabBatch; i++)
        {
            if (first + i < length)
            {
                out[static_cast<size_t>(first + i) * stride] = {
                    static_cast<R>(static_cast<double>(sum[i].x) + re[first + i]),
                    static_cast<R>(static_cast<double>(sum[i].y) + (m > 0 ? im[first + i] : 0))};
            }
        }
    }
}

/* Wave vectors first .. first + here - 1 of those congruent to the lane's frequency, at[3], into shared memory. The
 * layers of a few are divided among the warps, as each takes as long as a column; part: sums of each warp. */
static __device__ inline void find_slab_waves(const SlabArgs& a,
                                              const int*      at,
                                              int             first,
                                              int             here,
                                              fmm_slab_wave (*wave)[c_lanes],
                                              fmm_slab_layers (*part)[c_lanes],
                                              int* inside)
{
    const int    lane = static_cast<int>(threadIdx.x % c_lanes), warp = static_cast<int>(threadIdx.x / c_lanes);
    const int    warps = static_cast<int>(blockDim.x / c_lanes), parts = max(1, warps / here);
    const int    row = 2 * a.range[1] + 1;
    const double phi = 2 * FMM_PI * at[2] / a.grid.ring;
    for (int item = warp; item < here * parts; item += warps)
    {
        const int     t = item / parts, i = (first + t) / row - a.range[0], j = (first + t) % row - a.range[1];
        double        h[2];
        const bool    use   = fmm_slab_wave_vector(&a.grid, at, i, j, h) != 0;
        const int     some  = __any_sync(0xffffffffu, use);
        fmm_slab_wave found = {0, 0, -1, 0, {0, 0, 0, 0}};
        if (use)
        {
            found       = fmm_slab_wave_of(&a.grid, h);
            found.layer = fmm_slab_sum_layers(&a.grid, found.k, phi, item % parts, parts);
        }
        if (parts > 1)
        {
            part[item][lane] = found.layer;
        }
        if (item % parts == 0)
        {
            wave[t][lane] = found;
            if (lane == 0)
            {
                inside[t] = some;
            }
        }
    }
    __syncthreads();
    if (parts > 1)
    {
        for (int t = warp; t < here; t += warps)
        {
            fmm_slab_layers sum = part[t * parts][lane];
            for (int p = 1; p < parts; p++)
            {
                const fmm_slab_layers more = part[t * parts + p][lane];
                sum.even += more.even;
                sum.odd += more.odd;
                sum.even_z += more.even_z;
                sum.odd_z += more.odd_z;
            }
            wave[t][lane].layer = sum;
        }
        __syncthreads();
    }
}

/* Adds what makes sums of a slab of those of its padded box (lattice_slab.h). Lanes have frequencies and warps columns,
 * as in reciprocal_part; most blocks of a thick slab find no wave vector that matters. */
template <class R>
__global__ void __launch_bounds__(c_lanes* c_mostWarps) slab_part(SlabArgs a, Vec2<R>* out)
{
    __shared__ fmm_slab_wave   wave[c_slabWaves][c_lanes]; /* k < 0: it does not matter for the lane */
    __shared__ fmm_slab_layers part[c_mostWarps][c_lanes];
    __shared__ int             inside[c_slabWaves];
    const int lane = static_cast<int>(threadIdx.x % c_lanes), warp = static_cast<int>(threadIdx.x / c_lanes);
    const int warps = static_cast<int>(blockDim.x / c_lanes), f = static_cast<int>(blockIdx.x) * c_lanes + lane;
    const int nz = a.grid.ring / 2 + 1, held = min(f, a.num_freq - 1);
    const int at[3] = {held / nz / a.grid.n[1], held / nz % a.grid.n[1], held % nz};
    const int waves = (2 * a.range[0] + 1) * (2 * a.range[1] + 1);
    for (int round = 0; round * warps <= a.degree; round++)
    {
        const int m = round * warps + (round % 2 != 0 ? warps - 1 - warp : warp), length = a.degree + 1 - m;
        double    re[c_maxDegree + 1], im[c_maxDegree + 1];
        bool      any = false;
        for (int i = 0; i < length; i++)
        {
            re[i] = im[i] = 0;
        }
        for (int first = 0; first < waves; first += c_slabWaves)
        {
            const int here = min(static_cast<int>(c_slabWaves), waves - first);
            if (round == 0 || waves > c_slabWaves)
            {
                __syncthreads(); /* all warps have read the wave vectors before */
                find_slab_waves(a, at, first, here, wave, part, inside);
            }
            for (int t = 0; t < here && length > 0; t++)
            {
                const fmm_slab_wave* w = &wave[t][lane];
                if (inside[t] == 0 || w->k < 0 || (w->k == 0 && m > 0))
                {
                    continue;
                }
                any = true;
                if (w->k == 0)
                {
                    fmm_slab_add_mean(&a.grid, &w->layer, a.sum, a.degree, a.weight, re);
                    continue;
                }
                double u = 1, v = 0, power = -a.weight * 2 * FMM_PI / a.grid.area / w->k;
                for (int i = 0; i < m; i++)
                {
                    const double next = u * w->x - v * w->y;
                    v                 = u * w->y + v * w->x;
                    u                 = next;
                    power *= w->k;
                }
                fmm_slab_add_column(w, a.sum, a.degree, m, u, v, power, re, im);
            }
        }
        if (round == 0)
        {
            wait_for_previous();
        }
        if (any && f < a.num_freq)
        {
            add_to_spectrum(a, m, length, re, im, out + f);
        }
    }
}

/* A lattice sum to be computed: S or Z, its degree, the cells of the shape, and the block of lattice vectors. */
struct WantedSum
{
    fmm_sum          sum;
    int              degree;
    const fmm_cells* cells;
    LatticeBlock     block;
};

static WantedSum wanted_sum(const gmxfmm_plan* plan, fmm_sum sum, const fmm_cells* cells)
{
    WantedSum w = {sum, 2 * plan->far.order + (sum == FMM_SUM_Z ? 2 : 0), cells, {}};
    fmm_real_range(cells, &plan->device->far.cells.ewald, w.block.range);
    return w;
}

static RealArgs real_args(const gmxfmm_plan* plan, const WantedSum& wanted, int first_m)
{
    const fmm_device* d = plan->device;
    const fmm_cells*  c = wanted.cells;
    RealArgs          a;
    a.block       = wanted.block;
    a.alpha       = d->far.cells.ewald.alpha;
    a.sum         = wanted.sum;
    a.degree      = wanted.degree;
    a.first_m     = first_m;
    a.near_reach  = c->near_reach;
    a.near_lookup = d->far.cells.lattice_near.as<short>();
    std::copy(c->cell, c->cell + 9, a.cell);
    return a;
}

static ReciprocalArgs reciprocal_args(const gmxfmm_plan* plan, const WantedSum& wanted)
{
    const fmm_device* d = plan->device;
    const fmm_cells*  c = wanted.cells;
    ReciprocalArgs    a;
    a.sum         = wanted.sum;
    a.degree      = wanted.degree;
    a.num_freq    = d->far.cells.num_freq;
    a.alpha       = d->far.cells.ewald.alpha;
    a.k_max       = d->far.cells.ewald.k_max;
    a.cell_volume = c->cell_volume;
    a.scale       = 1.0 / c->num_cells; /* as the transforms are not normalised */
    a.background  = a.sum == FMM_SUM_S ? FMM_PI / (a.alpha * a.alpha * a.cell_volume) * a.scale : 0;
    std::copy(c->n, c->n + 3, a.n);
    fmm_inverse(c->cell, fmm_determinant(c->cell), a.dual);
    for (double& dual : a.dual)
    {
        dual *= 2 * FMM_PI;
    }
    fmm_reciprocal_range(c, &d->far.cells.ewald, a.range);
    return a;
}

static SlabArgs slab_args(const gmxfmm_plan* plan, const WantedSum& wanted)
{
    SlabArgs a;
    a.grid     = fmm_slab_grid_of(wanted.cells, wanted.degree, is_double(plan) ? c_toleranceDouble : c_toleranceSingle);
    a.sum      = wanted.sum;
    a.degree   = wanted.degree;
    a.num_freq = plan->device->far.cells.num_freq;
    a.weight   = 1.0 / wanted.cells->num_cells;
    fmm_slab_range(&a.grid, a.range);
    return a;
}

/* The largest tile with which three blocks fit on a multiprocessor, or the smallest tile. */
template <class R>
static RealTile choose_tile(const fmm_device* d, const fmm_cells* c, const LatticeBlock& block)
{
    const int    num_z = c->n[2] / 2 + 1;
    const size_t room  = static_cast<size_t>(d->limits.max_shared) / 3;
    RealTile     t;
    t.wide   = blocks_for(num_z, blocks_for(num_z, c_wide));
    t.rows   = c->n[1] / 2 + 1;
    t.planes = std::min(static_cast<int>(c_planes), block.range[0] + 1);
    while (real_shared<R>(c->n, block, t) > room && t.wide * t.rows * t.planes > 1)
    {
        int& most = t.wide > c_wide / 2  ? t.wide
                    : t.planes > 1       ? t.planes
                    : t.rows > c_fewRows ? t.rows
                    : t.wide > 1         ? t.wide
                                         : t.rows;
        most      = (most + 1) / 2;
    }
    /* more planes if there is room, so that threads wait for each other less often */
    RealTile next = t;
    while (next.planes <= block.range[0] + 1 && real_shared<R>(c->n, block, next) <= room)
    {
        t.planes = next.planes++;
    }
    t.planes = blocks_for(block.range[0] + 1, blocks_for(block.range[0] + 1, t.planes));
    return t;
}

template <class R, int MOST>
static gmxfmm_status launch_reciprocal(gmxfmm_plan* plan, const WantedSum& wanted, Vec2<R>* out, cudaStream_t stream)
{
    const fmm_device* d      = plan->device;
    const int         blocks = blocks_for(d->far.cells.num_freq, c_lanes), columns = wanted.degree + 1;
    /* few frequencies: more warps for their columns */
    const int    warps  = std::min(static_cast<int>(c_mostWarps), blocks_for(columns, blocks < c_sumBlocks ? 2 : 4));
    const size_t shared = reciprocal_shared<typename WaveType<R, MOST>::type>(wanted.degree);
    const auto   kernel = reciprocal_part<R, MOST>;
    FMM_CUDA(plan, allow_shared(&plan->device->allowed, kernel));
    FMM_CUDA(plan,
             launch_next(d->has_chains, kernel, dim3(static_cast<unsigned>(blocks)),
                         static_cast<unsigned>(c_lanes * warps), shared, stream, reciprocal_args(plan, wanted), out));
    return GMXFMM_OK;
}

template <class R>
static gmxfmm_status add_reciprocal(gmxfmm_plan* plan, const WantedSum& wanted, Vec2<R>* out, cudaStream_t stream)
{
    return wanted.degree < 20   ? launch_reciprocal<R, 20>(plan, wanted, out, stream)
           : wanted.degree < 28 ? launch_reciprocal<R, 28>(plan, wanted, out, stream)
                                : launch_reciprocal<R, c_maxDegree + 1>(plan, wanted, out, stream);
}

template <class R>
static gmxfmm_status add_slab(gmxfmm_plan* plan, const WantedSum& wanted, Vec2<R>* out, cudaStream_t stream)
{
    const fmm_device* d      = plan->device;
    const dim3        blocks = dim3(static_cast<unsigned>(blocks_for(d->far.cells.num_freq, c_lanes)));
    const int         warps  = std::min(static_cast<int>(c_mostWarps), wanted.degree + 1);
    FMM_CUDA(plan, launch_next(d->has_chains, slab_part<R>, blocks, static_cast<unsigned>(c_lanes * warps), 0, stream,
                               slab_args(plan, wanted), out));
    return GMXFMM_OK;
}

/* Computes a spectrum, as many columns at once as the table has room for. */
template <class R>
static gmxfmm_status make_spectrum(gmxfmm_plan* plan, const WantedSum& wanted, Vec2<R>* out, cudaStream_t stream)
{
    fmm_device*      d      = plan->device;
    const fmm_cells* c      = wanted.cells;
    const int        degree = wanted.degree;
    R*               table  = d->far.cells.lattice_table.as<R>();
    SpectrumArgs<R>  a;
    a.block    = wanted.block;
    a.tile     = choose_tile<R>(d, c, a.block);
    a.degree   = degree;
    a.num_freq = d->far.cells.num_freq;
    a.add      = fmm_is_periodic(plan);
    a.scale    = 1.0 / c->num_cells;
    a.table    = table;
    a.out      = out;
    std::copy(c->n, c->n + 3, a.n);
    const size_t shared = real_shared<R>(c->n, a.block, a.tile);
    const size_t num    = static_cast<size_t>(a.block.num()),
                 room   = d->far.cells.lattice_table.capacity / (num * sizeof(R));
    const int tiles     = blocks_for(c->n[2] / 2 + 1, a.tile.wide) * blocks_for(c->n[1] / 2 + 1, a.tile.rows);
    FMM_CUDA(plan, (allow_shared(&d->allowed, add_real<R>)));
    for (int first = 0, end; first <= degree; first = end)
    {
        const size_t before = static_cast<size_t>(harm_column(degree, first));
        for (end = first + 1; end <= degree && static_cast<size_t>(harm_column(degree, end + 1)) - before <= room;
             end++)
        {
        }
        const dim3 vectors(static_cast<unsigned>(blocks_for(static_cast<int64_t>(num), c_threads)),
                           static_cast<unsigned>(end - first));
        real_table<R><<<vectors, c_threads, 0, stream>>>(real_args(plan, wanted, first), table);
        FMM_CUDA(plan, cudaGetLastError());
        if (first == 0 && fmm_is_periodic(plan))
        {
            FMM_TRY(add_reciprocal<R>(plan, wanted, out, stream));
        }
        if (first == 0 && fmm_is_slab(c->periodic))
        {
            FMM_TRY(add_slab<R>(plan, wanted, out, stream));
        }
        a.first_m       = first;
        const int pairs = pair_column(degree, end) + end - pair_column(degree, first) - first;
        FMM_CUDA(plan, launch_next(d->has_chains, add_real<R>,
                                   dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(pairs)), c_realThreads,
                                   shared, stream, a));
    }
    return GMXFMM_OK;
}

/* A spectrum to be interpolated, of `num` numbers; 0: none. */
template <class R>
struct Interpolated
{
    size_t   num;
    const R* node[FMM_LINE_NODES];
    R        weight[FMM_LINE_NODES];
    R*       out;
};

template <class R>
static __device__ inline void interpolate_at(const Interpolated<R>& a, size_t i)
{
    if (i < a.num)
    {
        R sum = 0;
#pragma unroll
        for (int node = 0; node < FMM_LINE_NODES; node++)
        {
            sum += a.weight[node] * a.node[node][i];
        }
        a.out[i] = sum;
    }
}

/* Interpolates both spectra and writes the box in one launch, as the device waits for the host at a change of the box.
 */
template <class R>
__global__ void interpolate(Interpolated<R> s, Interpolated<R> z, BoxValues box, BoxValues* to)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    interpolate_at(s, i);
    interpolate_at(z, i);
    if (i == 0 && to != NULL)
    {
        *to = box;
    }
}

/* The three nodes from which the present shape's spectrum is interpolated; those not held yet are computed. */
template <class R>
static gmxfmm_status make_nodes(gmxfmm_plan* plan, fmm_sum sum, cudaStream_t stream, Interpolated<R>* a)
{
    fmm_device*           d       = plan->device;
    const fmm_shape_line* line    = &plan->far.line;
    DeviceBuffer*         buffers = sum == FMM_SUM_S ? d->far.cells.node_s : d->far.cells.node_z;
    fmm_line_node*        held    = sum == FMM_SUM_S ? d->far.cells.held_s : d->far.cells.held_z;
    for (int i = 0; i < FMM_LINE_NODES; i++)
    {
        const int       node = line->first + i, place = fmm_line_place(node);
        const fmm_cells cells  = fmm_line_cells(line, fmm_convolved(plan), node);
        const WantedSum wanted = wanted_sum(plan, sum, &cells);
        if (!fmm_line_holds(&held[place], line, node))
        {
            FMM_TRY(make_spectrum(plan, wanted, buffers[place].as<Vec2<R>>(), stream));
            plan->info.num_spectra += sum == FMM_SUM_S;
        }
        a->node[i]   = buffers[place].as<R>();
        a->weight[i] = static_cast<R>(line->weight[i]);
        a->num       = 2 * static_cast<size_t>(num_pairs(wanted.degree)) * static_cast<size_t>(d->far.cells.num_freq);
    }
    a->out = sum == FMM_SUM_S ? d->far.cells.s.as<R>() : d->far.cells.z.as<R>();
    return GMXFMM_OK;
}

template <class R>
static gmxfmm_status
interpolate_spectra(gmxfmm_plan* plan, bool s, bool z, const BoxValues* box, BoxValues* to, cudaStream_t stream)
{
    const BoxValues none = {};
    Interpolated<R> of_s = {}, of_z = {};
    if (s)
    {
        FMM_TRY(make_nodes(plan, FMM_SUM_S, stream, &of_s));
    }
    if (z)
    {
        FMM_TRY(make_nodes(plan, FMM_SUM_Z, stream, &of_z));
    }
    const size_t num = std::max(of_s.num, of_z.num);
    interpolate<R><<<static_cast<unsigned>(blocks_for(static_cast<int64_t>(num), c_threads)), c_threads, 0, stream>>>(
        of_s, of_z, box != NULL ? *box : none, to);
    FMM_CUDA(plan, cudaGetLastError());
    plan->device->far.cells.s_version = s ? plan->far.version : plan->device->far.cells.s_version;
    plan->device->far.cells.z_version = z ? plan->far.version : plan->device->far.cells.z_version;
    return GMXFMM_OK;
}

gmxfmm_status
fmm_cuda_interpolate(gmxfmm_plan* plan, bool with_virial, const BoxValues* box, BoxValues* to, cudaStream_t stream)
{
    return is_double(plan) ? interpolate_spectra<double>(plan, true, with_virial, box, to, stream)
                           : interpolate_spectra<float>(plan, true, with_virial, box, to, stream);
}

template <class R>
static gmxfmm_status spectra(gmxfmm_plan* plan, bool with_virial, cudaStream_t stream)
{
    DeviceConvolution* d = &plan->device->far.cells;
    const bool         s = !has_s(plan), z = with_virial && !has_z(plan);
    bool               capturing = false;
    FMM_TRY(fmm_cuda_is_capturing(plan, stream, &capturing));
    /* a graph computes the sums of the present shape itself: when it is launched the nodes may be those of other shapes
     */
    if (plan->far.line.active && !capturing)
    {
        return s || z ? interpolate_spectra<R>(plan, s, z, NULL, NULL, stream) : GMXFMM_OK;
    }
    if (s)
    {
        FMM_TRY(make_spectrum(plan, wanted_sum(plan, FMM_SUM_S, fmm_convolved(plan)), d->s.as<Vec2<R>>(), stream));
        d->s_version = capturing ? d->s_version : plan->far.version;
        plan->info.num_spectra++;
    }
    if (z)
    {
        FMM_TRY(make_spectrum(plan, wanted_sum(plan, FMM_SUM_Z, fmm_convolved(plan)), d->z.as<Vec2<R>>(), stream));
        d->z_version = capturing ? d->z_version : plan->far.version;
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_spectra(gmxfmm_plan* plan, bool with_virial, cudaStream_t stream)
{
    return is_double(plan) ? spectra<double>(plan, with_virial, stream) : spectra<float>(plan, with_virial, stream);
}

/* Chooses the Ewald parameters, which depend on the arrays and the shortest far vector; the latter changes when assign
 * chooses another near set. */
static void choose_ewald(gmxfmm_plan* plan)
{
    fmm_device*      d = plan->device;
    const fmm_cells* c = fmm_convolved(plan);
    if (d->far.cells.ewald_distance != c->far_distance || d->far.cells.lattice_version != plan->far.arrays)
    {
        d->far.cells.ewald =
            fmm_ewald_choose(c, 2 * plan->far.order + 2, is_double(plan) ? c_toleranceDouble : c_toleranceSingle);
        d->far.cells.ewald_distance = c->far_distance;
    }
}

/* Uploads the near set and reserves the table, with room for the largest column of coefficients at least. Waits for
 * kernels that use them. */
static gmxfmm_status prepare_tables(gmxfmm_plan* plan, size_t column, size_t all)
{
    fmm_device*      d     = plan->device;
    const fmm_cells* c     = fmm_convolved(plan);
    const size_t     width = 2 * static_cast<size_t>(c->near_reach) + 1, near = width * width * width * sizeof(short);
    const size_t     step = static_cast<size_t>(d->far.num_coef) * real_size(plan) *
                        (static_cast<size_t>(c->num_cells) + 2 * static_cast<size_t>(d->far.cells.num_freq));
    /* room for all columns at once, if that is not much, or little compared with the arrays of a step; 3/2, since a
     * range may grow with the box */
    const size_t enough = std::max(d->far.path->lattice_bytes, step / 4);
    FMM_CUDA(plan, fmm_cuda_wait_for_device());
    FMM_TRY(
        fmm_device_reserve(plan, &d->far.cells.lattice_table, std::max(2 * column, std::min(all + all / 2, enough))));
    FMM_TRY(fmm_device_reserve(plan, &d->far.cells.lattice_near, near));
    FMM_TRY(fmm_cuda_upload(plan, d->far.cells.lattice_near.memory, c->near_lookup, near));
    d->far.cells.lattice_set     = plan->far.shape.near_set;
    d->far.cells.lattice_version = plan->far.arrays;
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_set_lattice(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    choose_ewald(plan);
    const fmm_cells*   c      = fmm_convolved(plan);
    const LatticeBlock block  = wanted_sum(plan, FMM_SUM_Z, c).block;
    const size_t       shared = is_double(plan) ? real_shared<double>(c->n, block, choose_tile<double>(d, c, block))
                                                : real_shared<float>(c->n, block, choose_tile<float>(d, c, block));
    if (shared > static_cast<size_t>(d->limits.max_shared))
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                        "a grid of %d x %d x %d cells is too long for lattice sums on the device", c->n[0], c->n[1],
                        c->n[2]);
    }
    const int    degree  = 2 * plan->far.order + 2; /* that of Z, the higher one; the longest column is m = 1 */
    const size_t vectors = static_cast<size_t>(block.num()) * real_size(plan);
    const size_t column  = 2 * static_cast<size_t>(degree) * vectors;
    if (d->far.cells.lattice_version == plan->far.arrays && d->far.cells.lattice_set == plan->far.shape.near_set &&
        column <= d->far.cells.lattice_table.capacity)
    {
        return GMXFMM_OK;
    }
    return prepare_tables(plan, column, static_cast<size_t>(harm_size(degree)) * vectors);
}
