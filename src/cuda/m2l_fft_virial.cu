/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Strain derivative of the lattice part of the far energy (THEORY section 6). A lane is a frequency; a warp has degrees
 * j of the moment products G_j^mu, which it contracts with the derivative of S at once.
 */
#include "spectrum.h"
#include "sums.h"

enum
{
    c_warps = 8
};

template <class R>
struct VirialArgs
{
    int            p, num_freq, n2, width; /* n2: cells along the direction that is halved; width: of a block */
    const Vec2<R>* spectrum;
    const Vec2<R>* s, *z;
    double*        out; /* blocks x 5 */
};

/* Adds M_n^m and M_k^l with l >= m to row j = n + k of the moment products, THEORY (20); see moment_products of
 * src/fmm/m2l_fft_virial.c. row[mu][width]. */
template <class R>
static __device__ inline void add_pair(int m, int l, int width, const Vec4<R>& a, const Vec4<R>& c, Vec2<R>* row)
{
    const R twice = l > m ? R(2) : R(1), s = m & 1 ? -twice : twice;
    const R ac = a.x * c.x + a.y * c.y;
    Vec2<R> up = {ac * twice, 0}, down = {0, 0};
    if (l > 0)
    {
        const R ad = a.x * c.z + a.y * c.w, bc = a.z * c.x + a.w * c.y, bd = a.z * c.z + a.w * c.w;
        up.x -= bd * twice;
        up.y = (ad + bc) * twice;
        if (m > 0)
        {
            down.x = (ac + bd) * (l > m ? s : 2 * s);
            down.y = l > m ? (ad - bc) * s : R(0);
        }
    }
    row[(m + l) * width].x += up.x;
    row[(m + l) * width].y += up.y;
    row[(l - m) * width].x += down.x;
    row[(l - m) * width].y += down.y;
}

template <class R>
static __device__ void moment_row(int p, int j, int width, const Vec4<R>* input, R weight, Vec2<R>* row)
{
    for (int mu = 0; mu <= j; mu++)
    {
        row[mu * width] = {0, 0};
    }
    for (int n = max(0, j - p); n <= min(p, j); n++)
    {
        const int k = j - n;
        for (int m = 0; m <= min(n, k); m++)
        {
            Vec4<R> a = input[pair_index(p, n, m) * width];
            a         = {a.x * weight, a.y * weight, a.z * weight, a.w * weight};
            for (int l = m; l <= k; l++)
            {
                add_pair(m, l, width, a, input[pair_index(p, k, l) * width], row);
            }
        }
    }
}

/* X_n^m for any m from pairs of 0 <= m <= n; 0 where |m| > n. */
template <class R>
static __device__ inline Vec2<R> element(const Vec2<R>* column0, int index, size_t stride, int m, bool inside)
{
    Vec2<R> v = {0, 0};
    if (inside)
    {
        v           = column0[static_cast<size_t>(index) * stride];
        const R odd = m & 1 ? R(-1) : R(1);
        v           = m < 0 ? Vec2<R>{v.x * odd, -v.y * odd} : v;
    }
    return v;
}

template <class R>
static __device__ inline Vec2<R> spectrum_at(const Vec2<R>* x, size_t stride, int top, int n, int m)
{
    const int a = abs(m);
    return element(x, a <= n ? pair_index(top, n, a) : 0, stride, m, a <= n);
}

template <class R>
static __device__ inline void add_product(double* w, const Vec2<R>& g, R fx, const Vec2<R>& x, R fy, const Vec2<R>& y)
{
    const R re = fx * x.x + fy * y.x, im = fx * x.y + fy * y.y;
    w[0] += static_cast<double>(g.x * re - g.y * im);
    w[1] += static_cast<double>(g.x * im + g.y * re);
}

/* Contracts row j with the strain derivative of S, THEORY (21); see contract of src/fmm/m2l_fft_virial.c. */
template <class R>
static __device__ void
contract(int p, int j, int width, const Vec2<R>* row, const Vec2<R>* s, const Vec2<R>* z, size_t stride, double* w)
{
    const int top = 2 * p;
    const R   inv = R(1) / static_cast<R>(2 * j + 3);
    for (int mu = -j; mu <= j; mu++)
    {
        const Vec2<R> g  = element(row, abs(mu), static_cast<size_t>(width), mu, true);
        const R       c0 = static_cast<R>(j + 1) / 3 - inv * static_cast<R>((j + 1) * (j + 1) - mu * mu);
        const R       c1 = -inv * static_cast<R>((j - mu) * (2 * mu + 1));
        const R       c2 = inv * static_cast<R>((j - mu) * (j - mu - 1));
        add_product(w + 0, g, inv, spectrum_at(z, stride, top + 2, j + 2, mu), c0, spectrum_at(s, stride, top, j, mu));
        add_product(w + 2, g, 2 * inv, spectrum_at(z, stride, top + 2, j + 2, mu + 1), c1,
                    spectrum_at(s, stride, top, j, mu + 1));
        add_product(w + 4, g, inv, spectrum_at(z, stride, top + 2, j + 2, mu + 2), c2,
                    spectrum_at(s, stride, top, j, mu + 2));
    }
}

template <class R>
__global__ void __launch_bounds__(32 * c_warps) m2l_virial(VirialArgs<R> a)
{
    extern __shared__ char shared[];
    Vec4<R>*               input = reinterpret_cast<Vec4<R>*>(shared);
    const int lane = static_cast<int>(threadIdx.x) & (a.width - 1), warp = static_cast<int>(threadIdx.x / 32);
    const int first = static_cast<int>(blockIdx.x) * a.width, f = first + lane, fz = f % (a.n2 / 2 + 1);
    Vec2<R>* row = reinterpret_cast<Vec2<R>*>(input + num_pairs(a.p) * a.width) + warp * (2 * a.p + 1) * a.width + lane;
    const int    last   = min(f, a.num_freq - 1);
    const size_t stride = static_cast<size_t>(a.num_freq);
    const bool   idle   = f >= a.num_freq || static_cast<int>(threadIdx.x % 32) >= a.width;
    /* twice where the mirror image of a frequency is not stored */
    const R weight = fz == 0 || 2 * fz == a.n2 ? R(1) : R(2);
    double  w[6]   = {0};
    stage_coefficients(a.p, a.num_freq, a.width, a.spectrum, first, input);
    __syncthreads();
    const int first_row = warp + c_warps * static_cast<int>(blockIdx.y), step = c_warps * static_cast<int>(gridDim.y);
    for (int j = first_row; j <= 2 * a.p && !idle; j += step)
    {
        moment_row(a.p, j, a.width, input + lane, weight, row);
        contract(a.p, j, a.width, row, a.s + last, a.z + last, stride, w);
    }
    const double part[5] = {0.5 * w[4], 0.5 * w[5], 0.5 * w[2], 0.5 * w[3], 0.5 * w[0]};
    for (int i = 0; i < 5; i++)
    {
        const double sum = block_sum<32 * c_warps>(part[i]);
        if (threadIdx.x == 0)
        {
            a.out[5 * (static_cast<size_t>(blockIdx.y) * gridDim.x + blockIdx.x) + i] = sum;
        }
    }
}

static size_t shared_memory(const gmxfmm_plan* plan, int width)
{
    const size_t words =
        4 * static_cast<size_t>(num_pairs(plan->order)) + 2 * static_cast<size_t>(c_warps * (2 * plan->order + 1));
    return words * static_cast<size_t>(width) * real_size(plan);
}

/* Frequencies of a block: as many as fit, 8 at order 24 in double precision. */
static int width_of(const gmxfmm_plan* plan)
{
    int width = 32;
    while (width > 1 && shared_memory(plan, width) > static_cast<size_t>(plan->device->max_shared))
    {
        width /= 2;
    }
    return width;
}

static int blocks_of(const gmxfmm_plan* plan)
{
    return blocks_for(plan->device->num_freq, width_of(plan));
}

/* Blocks that share the degrees of the same frequencies, where those alone are too few blocks to fill a device. */
static int shares_of(const gmxfmm_plan* plan)
{
    return blocks_of(plan) < c_sumBlocks ? (2 * plan->order + c_warps) / c_warps : 1;
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
    VirialArgs<R> a      = {
             plan->order,        d->num_freq,        transform_cells(plan)->n[2], width, d->spectrum.as<Vec2<R>>(),
             d->s.as<Vec2<R>>(), d->z.as<Vec2<R>>(), d->far_virial.as<double>()};
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
