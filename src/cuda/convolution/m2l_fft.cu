/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * M2L over all cells and images by one FFT (THEORY section 5): batched transforms, by fft.cu or cuFFT, and the product
 * with the spectra of S. In the product each lane has a frequency, and each warp has work items. An item is up to
 * c_most degrees k of one order l of the result, kept in registers during the loop over all M_n^m. For fixed (m, l) the
 * factors are a Hankel matrix in n + k, of which a moving window is kept in registers.
 */
#include <cstring>

#include "cuda/convolution/convolution.h"
#include "cuda/runtime/chain.h"
#include "cuda/expansions/orders.h"
#include "cuda/convolution/spectrum.h"
#include "fmm/math/fold.h"

enum
{
    c_most     = 3,  /* degrees of an item */
    c_step     = 2,  /* degrees n computed at once */
    c_maxWarps = 12, /* of a block */
    c_maxParts = 12, /* blocks that divide the items of the same frequencies */
    c_maxItems = (FMM_OCTREE_MAX_ROTATION_ORDER + 1) * (FMM_OCTREE_MAX_ROTATION_ORDER + 2) / 2, /* of one degree */
    c_fewFrequencies = 12000
};

struct WorkItem
{
    int l, k, num; /* degrees k .. k + num - 1 of order l */
};

struct WorkTable
{
    int      start[c_maxParts * c_maxWarps + 1]; /* of the items of each warp, part after part */
    WorkItem item[c_maxItems];
};

template <class R>
struct ProductArgs
{
    int p, num_freq, warps;                           /* warps of a block that have items */
    int columns, first_column, own_columns, own_freq; /* of the range; own_freq: frequencies of its columns */
    const Vec2<R>*   from;
    Vec2<R>*         to;
    const Vec2<R>*   s;
    const WorkTable* table;
};

/* Factors of one pair of columns: out re <- in re, out re <- in im, out im <- in re, out im <- in im. */
template <class R>
struct Folded
{
    R rr, ri, ir, ii;
};

/* Where the factors of (m, l) are read, and the signs of X^-mu = (-1)^mu conj X^mu. */
template <class R>
struct Columns
{
    const Vec2<R>*plus, *minus; /* at degree 0 */
    size_t        stride;
    R             p_sign, q_sign;
};

template <class R>
static __device__ inline Columns<R> columns_of(int top, int m, int l, const Vec2<R>* s, size_t stride)
{
    const int  mu = l > m ? l - m : m - l;
    int        p_sign, q_sign;
    Columns<R> c;
    fold_spectrum_signs(m, l, &p_sign, &q_sign);
    c.plus   = s + static_cast<ptrdiff_t>(pair_column(top, l + m)) * static_cast<ptrdiff_t>(stride);
    c.minus  = s + static_cast<ptrdiff_t>(pair_column(top, mu)) * static_cast<ptrdiff_t>(stride);
    c.stride = stride;
    c.p_sign = R(p_sign);
    c.q_sign = R(q_sign);
    return c;
}

/* Factors of columns m and l at degree j (fold_spectrum_signs). */
template <bool HAS_B, class R>
static __device__ inline Folded<R> fold(const Columns<R>& c, int j)
{
    const Vec2<R> plus = c.plus[static_cast<size_t>(j) * c.stride];
    Folded<R>     f    = {plus.x, 0, plus.y, 0};
    if (HAS_B)
    {
        const Vec2<R> minus = c.minus[static_cast<size_t>(j) * c.stride];
        f.rr                = plus.x + c.p_sign * minus.x;
        f.ri                = c.q_sign * minus.y - plus.y;
        f.ir                = c.q_sign * minus.y + plus.y;
        f.ii                = plus.x - c.p_sign * minus.x;
    }
    return f;
}

/* Sums of one item: result k is A + iB, both complex. */
template <class R, int K>
struct Sums
{
    Vec4<R> v[K];
};

/* Adds column m of the multipoles to the K degrees from k on. HAS_B: m > 0, HAS_I: l > 0. */
template <bool HAS_B, bool HAS_I, int WIDTH, class R, int K>
static __device__ inline void
add_column(int p, int m, int k, const Columns<R>& c, const Vec4<R>* input, Sums<R, K>& sums)
{
    Folded<R> window[K + c_step - 1];
#pragma unroll
    for (int i = 0; i < K - 1; i++)
    {
        window[i] = fold<HAS_B>(c, k + m + i);
    }
    for (int n = m; n <= p; n += c_step)
    {
        Vec4<R> in[c_step];
#pragma unroll
        for (int i = 0; i < c_step; i++)
        {
            in[i] = {0, 0, 0, 0};
            if (n + i <= p)
            {
                in[i] = input[(n + i) * WIDTH];
            }
            /* for degrees above p the factor is multiplied by zero, but must be finite */
            window[K - 1 + i] = fold<HAS_B>(c, min(n + k + K - 1 + i, 2 * p));
        }
#pragma unroll
        for (int i = 0; i < c_step; i++)
        {
#pragma unroll
            for (int t = 0; t < K; t++)
            {
                const Folded<R>& f = window[i + t];
                Vec4<R>&         v = sums.v[t];
                v.x += f.rr * in[i].x;
                v.y += f.rr * in[i].y;
                if (HAS_B)
                {
                    v.x += f.ri * in[i].z;
                    v.y += f.ri * in[i].w;
                }
                if (HAS_I)
                {
                    v.z += f.ir * in[i].x;
                    v.w += f.ir * in[i].y;
                    if (HAS_B)
                    {
                        v.z += f.ii * in[i].z;
                        v.w += f.ii * in[i].w;
                    }
                }
            }
        }
#pragma unroll
        for (int i = 0; i < K - 1; i++)
        {
            window[i] = window[i + c_step];
        }
    }
}

/* Writes the degrees of an item to the spectrum, with their phases. */
template <bool HAS_I, class R, int K>
static __device__ inline void
store_sums(const ProductArgs<R>& a, const WorkItem& item, const Sums<R, K>& sums, size_t f)
{
    const int p = a.p, l = item.l;
    if (f >= static_cast<size_t>(a.num_freq))
    {
        return;
    }
#pragma unroll
    for (int t = 0; t < K; t++)
    {
        const int     k = item.k + t;
        const Vec4<R> v = sums.v[t];
        a.to[static_cast<size_t>(harm_re(p, k, l)) * static_cast<size_t>(a.num_freq) + f] =
            with_phase(k, Vec2<R>{v.x, v.y});
        if (HAS_I)
        {
            a.to[static_cast<size_t>(harm_im(p, k, l)) * static_cast<size_t>(a.num_freq) + f] =
                with_phase(k, Vec2<R>{v.z, v.w});
        }
    }
}

/* One item for one frequency; s and input point to the lane's elements. */
template <bool HAS_I, int WIDTH, class R, int K>
static __device__ inline void
do_item(const ProductArgs<R>& a, const WorkItem& item, const Vec2<R>* s, size_t stride, const Vec4<R>* input, size_t f)
{
    const int  p = a.p, l = item.l, top = 2 * p;
    Sums<R, K> sums;
#pragma unroll
    for (int t = 0; t < K; t++)
    {
        sums.v[t] = {0, 0, 0, 0};
    }
    add_column<false, HAS_I, WIDTH>(p, 0, item.k, columns_of(top, 0, l, s, stride), input, sums);
    for (int m = 1; m <= p; m++)
    {
        add_column<true, HAS_I, WIDTH>(p, m, item.k, columns_of(top, m, l, s, stride),
                                       input + pair_column(p, m) * WIDTH, sums);
    }
    store_sums<HAS_I>(a, item, sums, f);
}

template <int WIDTH, class R, int K>
static __device__ inline void do_degrees(
    const ProductArgs<R>& a, const WorkItem& item, const Vec2<R>* s, size_t stride, const Vec4<R>* input, size_t f)
{
    if (item.num == K)
    {
        item.l > 0 ? do_item<true, WIDTH, R, K>(a, item, s, stride, input, f)
                   : do_item<false, WIDTH, R, K>(a, item, s, stride, input, f);
    }
    else if constexpr (K > 1)
    {
        do_degrees<WIDTH, R, K - 1>(a, item, s, stride, input, f);
    }
}

/* Place of the range's frequency number i; with i too large that of the last. */
template <class R>
static __device__ inline size_t frequency(const ProductArgs<R>& a, int i)
{
    const int held = min(i, a.own_freq - 1), layer = held / a.own_columns;
    return static_cast<size_t>(layer) * static_cast<size_t>(a.columns) +
           static_cast<size_t>(a.first_column + held - layer * a.own_columns);
}

/* Copies the block's part of the lattice spectra, f being the lane's frequency, to shared memory. */
template <class R>
static __device__ void stage_spectra(const ProductArgs<R>& a, size_t f, Vec2<R>* s)
{
    const int      lane = static_cast<int>(threadIdx.x % 32), warps = static_cast<int>(blockDim.x / 32);
    const size_t   step = static_cast<size_t>(warps) * static_cast<size_t>(a.num_freq);
    int            pair = static_cast<int>(threadIdx.x / 32);
    const Vec2<R>* from = a.s + static_cast<size_t>(pair) * static_cast<size_t>(a.num_freq) + f;
    unsigned       to   = static_cast<unsigned>(__cvta_generic_to_shared(s + pair * 32 + lane));
#pragma unroll 4
    for (; pair < num_pairs(2 * a.p); pair += warps)
    {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from),
                     "n"(static_cast<int>(sizeof(Vec2<R>))));
        from += step;
        to += static_cast<unsigned>(warps * 32) * static_cast<unsigned>(sizeof(Vec2<R>));
    }
}

/* Items of a warp: begin and end in the table. The owner is the warp's number among those of all blocks for the same
 * frequencies. */
static __device__ inline int2 own_items(const WorkTable* table, int warps)
{
    const int warp = static_cast<int>(threadIdx.x / 32), owner = static_cast<int>(blockIdx.y) * warps + warp;
    return warp < warps ? make_int2(table->start[owner], table->start[owner + 1]) : make_int2(0, 0);
}

/* WIDTH: frequencies of a block. S_SHARED: shared memory has room for their spectra and the coefficients. */
template <class R, bool S_SHARED, int WIDTH>
__global__ void __launch_bounds__(32 * c_maxWarps, sizeof(R) == 4 ? 2 : 1) product(ProductArgs<R> a)
{
    extern __shared__ char shared[];
    Vec4<R>*               input  = reinterpret_cast<Vec4<R>*>(shared);
    const int              lane   = static_cast<int>(threadIdx.x % WIDTH);
    const int              i      = static_cast<int>(blockIdx.x) * WIDTH + lane;
    const size_t           f      = frequency(a, i);
    const Vec2<R>*         s      = a.s + f;
    size_t                 stride = static_cast<size_t>(a.num_freq);
    if (S_SHARED)
    {
        Vec2<R>* copy = reinterpret_cast<Vec2<R>*>(input + num_pairs(a.p) * WIDTH);
        stage_spectra(a, f, copy);
        s      = copy + lane;
        stride = 32;
    }
    wait_for_previous(); /* the spectra read above are older */
    stage_coefficients(a.p, a.num_freq, WIDTH, a.from, f, input);
    asm volatile("cp.async.wait_all;" ::);
    __syncthreads();
    const int2   own = own_items(a.table, a.warps);
    const size_t to  = i < a.own_freq ? f : static_cast<size_t>(a.num_freq); /* not stored */
    for (int item = own.x; item < own.y; item++)
    {
        do_degrees<WIDTH, R, c_most>(a, a.table->item[item], s, stride, input + lane, to);
    }
}

/*
 * Orders with kernels of their own. Degrees n go down from P to m, so that the loop can be unrolled from its fixed end,
 * and the window of factors moves without copies between registers.
 */
template <int P, bool HAS_B, bool HAS_I, class R, int K>
static __device__ inline void add_column_down(int m, const Columns<R>& c, int k, const Vec4<R>* input, Sums<R, K>& sums)
{
    Folded<R> window[P + K];
#pragma unroll
    for (int i = 0; i < K - 1; i++)
    {
        window[i] = fold<HAS_B>(c, P + k + K - 1 - i);
    }
#pragma unroll
    for (int s = 0; s <= P; s++)
    {
        if (P - s < m)
        {
            break;
        }
        const Vec4<R> in  = input[(P - s) * 32];
        window[s + K - 1] = fold<HAS_B>(c, P + k - s);
#pragma unroll
        for (int t = 0; t < K; t++)
        {
            const Folded<R>& f = window[s + K - 1 - t];
            Vec4<R>&         v = sums.v[t];
            v.x += f.rr * in.x;
            v.y += f.rr * in.y;
            if (HAS_I)
            {
                v.z += f.ir * in.x;
                v.w += f.ir * in.y;
            }
            if (HAS_B)
            {
                v.x += f.ri * in.z;
                v.y += f.ri * in.w;
                if (HAS_I)
                {
                    v.z += f.ii * in.z;
                    v.w += f.ii * in.w;
                }
            }
        }
    }
}

template <int P, bool HAS_I, class R, int K>
static __device__ inline void
do_item_down(const ProductArgs<R>& a, const WorkItem& item, const Vec2<R>* s, const Vec4<R>* input, size_t f)
{
    constexpr int top = 2 * P;
    const int     l   = item.l;
    const R       odd = l & 1 ? R(-1) : R(1);
    Sums<R, K>    sums;
    Columns<R>    c = {s + pair_column(top, l) * 32, s + pair_column(top, l) * 32, 32, 0, 0};
#pragma unroll
    for (int t = 0; t < K; t++)
    {
        sums.v[t] = {0, 0, 0, 0};
    }
    add_column_down<P, false, HAS_I>(0, c, item.k, input, sums);
#pragma unroll 1
    for (int m = 0; m <= P; m++)
    {
        if (m > 0)
        {
            add_column_down<P, true, HAS_I>(m, c, item.k, input, sums);
        }
        /* the columns of m + 1: l + m + 1 and |l - m - 1|; the signs of columns_of */
        input += (P - m) * 32;
        c.plus += (top - l - m) * 32;
        c.minus += (m < l ? l - m - 1 - top : top - m + l) * 32;
        c.p_sign = m < l ? (m & 1 ? R(1) : R(-1)) : odd;
        c.q_sign = m < l ? c.p_sign : -odd;
    }
    store_sums<HAS_I>(a, item, sums, f);
}

template <int P, class R, int K>
static __device__ inline void
do_degrees_down(const ProductArgs<R>& a, const WorkItem& item, const Vec2<R>* s, const Vec4<R>* input, size_t f)
{
    if (item.num == K)
    {
        item.l > 0 ? do_item_down<P, true, R, K>(a, item, s, input, f)
                   : do_item_down<P, false, R, K>(a, item, s, input, f);
    }
    else if constexpr (K > 1)
    {
        do_degrees_down<P, R, K - 1>(a, item, s, input, f);
    }
}

template <class R, int P>
__global__ void __launch_bounds__(32 * c_maxWarps, sizeof(R) == 4 ? 3 : 1) product_special(ProductArgs<R> a)
{
    extern __shared__ char shared[];
    Vec4<R>*               input = reinterpret_cast<Vec4<R>*>(shared);
    Vec2<R>*               s     = reinterpret_cast<Vec2<R>*>(input + num_pairs(P) * 32);
    const int              lane = static_cast<int>(threadIdx.x % 32), i = static_cast<int>(blockIdx.x) * 32 + lane;
    const size_t           f = frequency(a, i);
    stage_spectra(a, f, s);
    wait_for_previous(); /* the spectra read above are older */
    stage_coefficients(P, a.num_freq, 32, a.from, f, input);
    asm volatile("cp.async.wait_all;" ::);
    __syncthreads();
    const int2   own = own_items(a.table, a.warps);
    const size_t to  = i < a.own_freq ? f : static_cast<size_t>(a.num_freq); /* not stored */
    for (int item = own.x; item < own.y; item++)
    {
        do_degrees_down<P, R, c_most>(a, a.table->item[item], s + lane, input + lane, to);
    }
}

/* Rough cost of an item: its multiplications and the loads for them. */
static int item_cost(const WorkItem& item)
{
    return item.l > 0 ? 8 * item.num + 12 : 4 * item.num + 8;
}

/* Assigns items, the most expensive first, each to the warp with the least work; returns the work of the busiest warp.
 */
static int divide_items(const WorkItem* item, int num, int warps, int* owner)
{
    int load[c_maxParts * c_maxWarps] = {0}, most = 0;
    for (int i = 0; i < num; i++)
    {
        int least = 0;
        for (int w = 1; w < warps; w++)
        {
            least = load[w] < load[least] ? w : least;
        }
        owner[i] = least;
        load[least] += item_cost(item[i]);
        most = load[least] > most ? load[least] : most;
    }
    return most;
}

static int make_items(int p, int most, WorkItem* item)
{
    int num = 0;
    for (int l = 0; l <= p; l++)
    {
        const int degrees = p + 1 - l, parts = (degrees + most - 1) / most;
        for (int i = 0; i < parts; i++)
        {
            const int begin = degrees * i / parts, end = degrees * (i + 1) / parts;
            item[num++] = {l, l + begin, end - begin};
        }
    }
    for (int i = 1; i < num; i++) /* by cost, descending */
    {
        for (int j = i; j > 0 && item_cost(item[j]) > item_cost(item[j - 1]); j--)
        {
            const WorkItem t = item[j];
            item[j]          = item[j - 1];
            item[j - 1]      = t;
        }
    }
    return num;
}

/* Into how many blocks the items of 32 frequencies are divided: as many as make the busiest multiprocessor least busy,
 * when each block takes c_staging, an estimate, of the work of all items to fetch spectra and coefficients. */
static int divide_blocks(const fmm_device* d, int num_items)
{
    const double c_staging = 0.08;
    const int    blocks = blocks_for(d->far.cells.num_freq, 32), processors = d->limits.processors;
    int          best  = 1;
    double       least = 0;
    for (int parts = 1; parts <= c_maxParts && parts <= num_items; parts++)
    {
        const double work = blocks_for(blocks * parts, processors) * (1.0 / parts + c_staging);
        if (parts == 1 || work < least)
        {
            best  = parts;
            least = work;
        }
    }
    return best;
}

/* Whether a multiprocessor has one block of a product at most, where that has 32 frequencies. */
static bool one_block_each(const fmm_device* d, int parts)
{
    return blocks_for(d->far.cells.num_freq, 32) * parts <= d->limits.processors;
}

/* Items of a product and how they are divided. */
struct Division
{
    WorkItem item[c_maxItems];
    int      owner[c_maxItems], num, warps, load; /* load: work of the busiest warp */
};

/* Divides items of up to `most` degrees among the warps of `parts` blocks. one_each: whether each of these has a
 * multiprocessor, so that the busiest warp is what counts. */
static void divide(int p, int most, int parts, bool one_each, Division* d)
{
    int best_cost = 0;
    d->num        = make_items(p, most, d->item);
    d->warps      = 1;
    for (int warps = 1; warps <= c_maxWarps && (warps - 1) * parts < d->num; warps++)
    {
        const int load = divide_items(d->item, d->num, warps * parts, d->owner);
        /* another warp is worth 6 % more of the warps' time idle */
        const int cost = one_each ? load : load * warps * 100 / (100 + 6 * warps);
        if (warps == 1 || cost < best_cost || (cost == best_cost && !one_each))
        {
            d->warps  = warps;
            best_cost = cost;
        }
    }
    d->load = divide_items(d->item, d->num, d->warps * parts, d->owner);
}

gmxfmm_status fmm_cuda_product_items(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    WorkTable   table;
    Division    division, other;
    /* few frequencies: smaller items, to be divided among more warps */
    const int p = plan->far.order;
    if (p > FMM_OCTREE_MAX_ROTATION_ORDER)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "order %d is above the highest, %d", p,
                        FMM_OCTREE_MAX_ROTATION_ORDER);
    }
    const int  most     = d->far.cells.num_freq < c_fewFrequencies ? 2 : c_most;
    const int  parts    = divide_blocks(d, make_items(p, most, division.item));
    const bool one_each = one_block_each(d, parts);
    int        total    = 0;
    divide(p, most, parts, one_each, &division);
    for (int degrees = 1; degrees <= c_most && one_each; degrees++)
    {
        divide(p, degrees, parts, true, &other);
        if (other.load < division.load)
        {
            division = other;
        }
    }
    std::memset(&table, 0, sizeof(table));
    for (int w = 0; w < division.warps * parts; w++)
    {
        table.start[w] = total;
        for (int i = 0; i < division.num; i++)
        {
            if (division.owner[i] == w)
            {
                table.item[total++] = division.item[i];
            }
        }
    }
    table.start[division.warps * parts] = total;
    d->far.cells.num_parts              = parts;
    d->far.cells.num_warps              = division.warps;
    FMM_TRY(fmm_device_reserve(plan, &d->far.cells.work_items, sizeof(table)));
    FMM_TRY(fmm_cuda_upload(plan, d->far.cells.work_items.memory, &table, sizeof(table)));
    return GMXFMM_OK;
}

/* What a product reads and writes, spectra of the device that it is for. */
struct Product
{
    const FarRange& far;
    const void*     from;
    void*           to;
    bool            chained;
    cudaStream_t    stream;
};

template <class R>
static ProductArgs<R> make_args(const gmxfmm_plan* plan, const Product& wanted)
{
    const fmm_device* d     = plan->device;
    const GridRange&  range = wanted.far.range;
    const int         own   = range.end_column - range.first_column;
    ProductArgs<R>    a;
    a.p            = plan->far.order;
    a.num_freq     = d->far.cells.num_freq;
    a.warps        = d->far.cells.num_warps;
    a.columns      = num_columns(plan);
    a.first_column = range.first_column;
    a.own_columns  = own;
    a.own_freq     = own * fmm_convolved(plan)->n[0];
    a.from         = static_cast<const Vec2<R>*>(wanted.from);
    a.to           = static_cast<Vec2<R>*>(wanted.to);
    a.s            = static_cast<const Vec2<R>*>(wanted.far.s);
    a.table        = static_cast<const WorkTable*>(wanted.far.work_items);
    return a;
}

/* width: frequencies of a block of the kernel */
template <class R>
static gmxfmm_status
launch(gmxfmm_plan* plan, void (*kernel)(ProductArgs<R>), int width, size_t shared, const Product& wanted)
{
    const fmm_device*    d = plan->device;
    const ProductArgs<R> a = make_args<R>(plan, wanted);
    const dim3           blocks(static_cast<unsigned>(blocks_for(a.own_freq, width)),
                                static_cast<unsigned>(d->far.cells.num_parts));
    /* where a block has a multiprocessor for itself, warps without items help to fetch */
    const unsigned warps =
        static_cast<unsigned>(one_block_each(d, d->far.cells.num_parts) ? c_maxWarps : d->far.cells.num_warps);
    FMM_CUDA(plan, allow_shared(wanted.far.allowed, kernel));
    FMM_CUDA(plan, launch_next(wanted.chained && wanted.far.has_chains, kernel, blocks, 32 * warps, shared,
                               wanted.stream, a));
    return GMXFMM_OK;
}

template <class R>
static gmxfmm_status dispatch(gmxfmm_plan* plan, const Product& wanted)
{
    const size_t input   = static_cast<size_t>(num_pairs(plan->far.order)) * 32 * sizeof(Vec4<R>);
    const size_t spectra = static_cast<size_t>(num_pairs(2 * plan->far.order)) * 32 * sizeof(Vec2<R>);
    const size_t room    = static_cast<size_t>(plan->device->limits.max_shared);
    if (wanted.far.range.end_column == wanted.far.range.first_column)
    {
        return GMXFMM_OK;
    }
    switch (plan->far.order)
    {
#define FMM_LAUNCH(P)                                                                                                  \
    case P:                                                                                                            \
        if (input + spectra <= room)                                                                                   \
        {                                                                                                              \
            return launch<R>(plan, product_special<R, P>, 32, input + spectra, wanted);                                \
        }                                                                                                              \
        break;
        FMM_SPECIAL_ORDERS(FMM_LAUNCH)
#undef FMM_LAUNCH
    default:
        break;
    }
    /* if fewer than two blocks fit on a multiprocessor, reading the spectra through the caches is faster */
    if (input + spectra <= room / 2)
    {
        return launch<R>(plan, product<R, true, 32>, 32, input + spectra, wanted);
    }
    return input <= room ? launch<R>(plan, product<R, false, 32>, 32, input, wanted)
                         : launch<R>(plan, product<R, false, 16>, 16, input / 2, wanted);
}

gmxfmm_status
fmm_cuda_product(gmxfmm_plan* plan, const FarRange& far, const void* from, void* to, bool chained, cudaStream_t stream)
{
    const Product wanted = {far, from, to, chained, stream};
    return is_double(plan) ? dispatch<double>(plan, wanted) : dispatch<float>(plan, wanted);
}
