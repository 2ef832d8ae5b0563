/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Strain derivative of the lattice part of the far energy (THEORY section 6). Each lane has a frequency. A warp
 * computes some of the moment products G_j^mu and contracts each with the derivative of S without storing it.
 */
#include "cuda/convolution/convolution.h"
#include "cuda/convolution/spectrum.h"
#include "cuda/runtime/sums.h"

#include <algorithm>

enum
{
    c_warps      = 8,
    c_fillBlocks = 2 * c_sumBlocks /* eight blocks for each multiprocessor of an H200 */
};

template <class R>
struct VirialArgs
{
    int            p, num_freq, n2, width; /* n2: cells along the direction that is halved; width: of a block */
    const Vec2<R>* spectrum;
    const Vec2<R>* s, *z;
    double*        out; /* blocks x 5 */
};

/* Column m and column l >= m of the moments, and the factors of their products in a row of G. */
template <class R>
struct ColumnPair
{
    int m, l;
    R   sign; /* 1: mu = l + m, -1: mu = l - m */
    R   factor_re, factor_im;
};

/* Adds the products of these columns to the moment products G_j^mu and G_(j+1)^mu, THEORY (20), the sums over n + k = j
 * and j + 1 of M_n^m M_k^l; see moment_products of src/fmm/cpu/convolution/m2l_fft_virial.c. Two rows at once load
 * little more than one: the M_k^l that row j uses now is used by row j + 1 at the next n. */
template <class R>
static __device__ inline void
add_columns(int p, int j, int width, const Vec4<R>* input, const ColumnPair<R>& of, Vec2<R>* row)
{
    const int      first = max(of.m, j - p), last = min(p, j + 1 - of.l);
    const Vec4<R>* a      = input + (pair_column(p, of.m) + first) * width;
    const Vec4<R>* c      = input + (pair_column(p, of.l) + j + 1 - first) * width;
    const Vec4<R>  none   = {0, 0, 0, 0};
    Vec4<R>        up     = j + 1 - first <= p ? *c : none; /* M_k^l for row j + 1 */
    Vec2<R>        sum[2] = {{0, 0}, {0, 0}};
    for (int n = first; n <= last; n++, a += width)
    {
        c -= width;
        const Vec4<R> here = j - n >= of.l ? *c : none, v = *a;
        const R       z = of.sign * v.z, w = of.sign * v.w;
        sum[0].x += v.x * here.x + v.y * here.y - z * here.z - w * here.w;
        sum[0].y += v.x * here.z + v.y * here.w + z * here.x + w * here.y;
        sum[1].x += v.x * up.x + v.y * up.y - z * up.z - w * up.w;
        sum[1].y += v.x * up.z + v.y * up.w + z * up.x + w * up.y;
        up = here;
    }
    for (int r = 0; r < 2; r++)
    {
        row[r].x += of.factor_re * sum[r].x;
        row[r].y += of.factor_im * sum[r].y;
    }
}

/* G_j^mu and G_(j+1)^mu */
template <class R>
static __device__ inline void moment_products(int p, int j, int mu, int width, const Vec4<R>* input, Vec2<R>* row)
{
    row[0] = row[1] = {0, 0};
    for (int m = max(0, mu - p); 2 * m <= mu; m++)
    {
        const R times = 2 * m < mu ? R(2) : R(1);
        add_columns(p, j, width, input, {m, mu - m, R(1), times, times}, row);
    }
    for (int m = 1; m + mu <= p && 2 * m + mu <= j + 1; m++)
    {
        const R times = m & 1 ? R(-2) : R(2);
        add_columns(p, j, width, input, {m, m + mu, R(-1), times, mu > 0 ? times : R(0)}, row);
    }
}

/* X_n^m for any m from pairs of 0 <= m <= n; 0 where |m| > n. */
template <class R>
static __device__ inline Vec2<R> spectrum_at(const Vec2<R>* x, size_t stride, int top, int n, int m)
{
    const int k = abs(m);
    Vec2<R>   v = {0, 0};
    if (k <= n)
    {
        v           = x[static_cast<size_t>(pair_index(top, n, k)) * stride];
        const R odd = k & 1 ? R(-1) : R(1);
        v           = m < 0 ? Vec2<R>{v.x * odd, -v.y * odd} : v;
    }
    return v;
}

template <class R>
static __device__ inline void add_product(double* w, const Vec2<R>& g, R fx, const Vec2<R>& x, R fy, const Vec2<R>& y)
{
    const R re = fx * x.x + fy * y.x, im = fx * x.y + fy * y.y;
    w[0] += static_cast<double>(g.x * re - g.y * im);
    w[1] += static_cast<double>(g.x * im + g.y * re);
}

/* Contracts G_j^mu with the strain derivative of S, THEORY (21); see contract of
 * src/fmm/cpu/convolution/m2l_fft_virial.c. */
template <class R>
static __device__ inline void
contract(int p, int j, int mu, const Vec2<R>& g, const Vec2<R>* s, const Vec2<R>* z, size_t stride, double* w)
{
    const int top = 2 * p;
    const R   inv = R(1) / static_cast<R>(2 * j + 3);
    const R   c0  = static_cast<R>(j + 1) / 3 - inv * static_cast<R>((j + 1) * (j + 1) - mu * mu);
    const R   c1  = -inv * static_cast<R>((j - mu) * (2 * mu + 1));
    const R   c2  = inv * static_cast<R>((j - mu) * (j - mu - 1));
    add_product(w + 0, g, inv, spectrum_at(z, stride, top + 2, j + 2, mu), c0, spectrum_at(s, stride, top, j, mu));
    add_product(w + 2, g, 2 * inv, spectrum_at(z, stride, top + 2, j + 2, mu + 1), c1,
                spectrum_at(s, stride, top, j, mu + 1));
    add_product(w + 4, g, inv, spectrum_at(z, stride, top + 2, j + 2, mu + 2), c2,
                spectrum_at(s, stride, top, j, mu + 2));
}

template <class R>
__global__ void __launch_bounds__(32 * c_warps) m2l_virial(VirialArgs<R> a)
{
    extern __shared__ char shared[];
    Vec4<R>*               input = reinterpret_cast<Vec4<R>*>(shared);
    const int    lane = static_cast<int>(threadIdx.x) & (a.width - 1), warp = static_cast<int>(threadIdx.x / 32);
    const int    first = static_cast<int>(blockIdx.x) * a.width, f = first + lane, fz = f % (a.n2 / 2 + 1);
    const int    last   = min(f, a.num_freq - 1);
    const size_t stride = static_cast<size_t>(a.num_freq);
    const bool   idle   = f >= a.num_freq || static_cast<int>(threadIdx.x % 32) >= a.width;
    double       w[6]   = {0};
    stage_coefficients(a.p, a.num_freq, a.width, a.spectrum, static_cast<size_t>(last), input);
    __syncthreads();
    /* items: rows 2 i and 2 i + 1 of one mu <= 2 i + 1 */
    const int first_item = warp + c_warps * static_cast<int>(blockIdx.y), step = c_warps * static_cast<int>(gridDim.y);
    for (int item = first_item, i = 0; item < (a.p + 1) * (a.p + 2) && !idle; item += step)
    {
        for (; item >= (i + 1) * (i + 2); i++)
        {
        }
        const int mu = item - i * (i + 1);
        Vec2<R>   g[2];
        moment_products(a.p, 2 * i, mu, a.width, input + lane, g);
        for (int r = 0; r < 2; r++)
        {
            const int j = 2 * i + r;
            if (mu <= j && j <= 2 * a.p)
            {
                contract(a.p, j, mu, g[r], a.s + last, a.z + last, stride, w);
                if (mu > 0)
                {
                    const R odd = mu & 1 ? R(-1) : R(1);
                    contract(a.p, j, -mu, {odd * g[r].x, -odd * g[r].y}, a.s + last, a.z + last, stride, w);
                }
            }
        }
    }
    /* the weight is 1 for frequencies whose mirror image is not stored, else 1/2 */
    const double weight  = fz == 0 || 2 * fz == a.n2 ? 0.5 : 1;
    const double part[5] = {weight * w[4], weight * w[5], weight * w[2], weight * w[3], weight * w[0]};
    block_sums<32 * c_warps, 2>(part, a.out + 5 * (static_cast<size_t>(blockIdx.y) * gridDim.x + blockIdx.x));
}

static size_t shared_memory(const gmxfmm_plan* plan, int width)
{
    return 4 * static_cast<size_t>(num_pairs(plan->far.order)) * static_cast<size_t>(width) * real_size(plan);
}

/* Frequencies of a block: as many as shared memory has room for, 8 at order 24 in double precision. */
static int width_of(const gmxfmm_plan* plan)
{
    int width = 32;
    while (width > 1 && shared_memory(plan, width) > static_cast<size_t>(plan->device->limits.max_shared))
    {
        width /= 2;
    }
    return width;
}

static int blocks_of(const gmxfmm_plan* plan)
{
    return blocks_for(plan->device->far.cells.num_freq, width_of(plan));
}

/* Number of blocks among which the products of the same frequencies are divided, more than one if there are too few
 * frequencies to fill a device. */
static int shares_of(const gmxfmm_plan* plan)
{
    const int blocks = blocks_of(plan), items = (plan->far.order + 1) * (plan->far.order + 2);
    return std::max(1, std::min(blocks_for(items, c_warps), c_fillBlocks / blocks));
}

int fmm_cuda_virial_blocks(const gmxfmm_plan* plan)
{
    return blocks_of(plan) * shares_of(plan);
}

template <class R>
static gmxfmm_status launch(gmxfmm_plan* plan, cudaStream_t stream)
{
    fmm_device*   d      = plan->device;
    const int     width  = width_of(plan);
    const size_t  shared = shared_memory(plan, width);
    VirialArgs<R> a      = {plan->far.order,
                            d->far.cells.num_freq,
                            fmm_convolved(plan)->n[2],
                            width,
                            d->far.cells.spectrum.as<Vec2<R>>(),
                            d->far.cells.s.as<Vec2<R>>(),
                            d->far.cells.z.as<Vec2<R>>(),
                            d->far.cells.virial.as<double>()};
    FMM_CUDA(plan, (allow_shared(&plan->device->allowed, m2l_virial<R>)));
    const dim3 blocks(static_cast<unsigned>(blocks_of(plan)), static_cast<unsigned>(shares_of(plan)));
    m2l_virial<R><<<blocks, 32 * c_warps, shared, stream>>>(a);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_m2l_virial(gmxfmm_plan* plan, cudaStream_t stream)
{
    return is_double(plan) ? launch<double>(plan, stream) : launch<float>(plan, stream);
}
