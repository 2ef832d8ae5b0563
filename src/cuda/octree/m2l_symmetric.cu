/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * M2L by presorted operators (Kohnke et al. 2020, approach 3), O(p^4): displacements that differ in signs only share a
 * reference operator, 56 for 316 displacements (ws = 1). They multiply each of up to eight sources by the operator and
 * add the products with signs from bitsets. Here the sources are first added with the signs of each character of the
 * mirror group, by THEORY (33), and the operator is applied to these sums: 3.4 times fewer multiplications.
 *
 * A block has 32 targets of one slab, one in each lane, and goes through the groups of their list. It writes signed
 * sums of sources to shared memory, [character][coefficient][lane]. Then warps, each with some runs of up to
 * c_symmetricRun outputs of one column, multiply them by the operator, whose elements are the same for all lanes. If
 * shared memory has no room for eight expansions, a block computes only a quarter of the outputs, those of one
 * character in x and y, which needs two.
 */
#include "fmm/math/fold.h"
#include "cuda/octree/hadamard.h"
#include "cuda/octree/state.h"
#include "cuda/runtime/shared_memory.h"

enum
{
    c_maxThreads = 512
};

template <class R>
struct SymmetricArguments
{
    OctreeLists           lists;
    const SymmetricGroup* group[8];
    int                   num_groups[8];
    SymmetricSchedule     schedule;
    int                   p, num_coef, folded_size, stride; /* of a folded block */
    const R*              folded;
    const R*              multipole;
    R*                    local;
};

template <class R>
struct alignas(16) Quad
{
    R x[4];
};

template <class R>
static __device__ __forceinline__ void load_quad(const R* from, R* to)
{
    const Quad<R> q = *reinterpret_cast<const Quad<R>*>(from);
#pragma unroll
    for (int i = 0; i < 4; i++)
    {
        to[i] = q.x[i];
    }
}

/* Adds sum_i h[i + k] w(i + k)[i] to sum[k], k < T, w being even or odd by the parity of i + k; Half: odd i + k do not
 * contribute. Elements of the operator are loaded four at a time into a window of 16 registers. */
template <int T, bool Half, class R>
static __device__ __forceinline__ void segment(const R* h, const R* even, const R* odd, int count, R (&sum)[T])
{
    R window[16];
#pragma unroll
    for (int q = 0; q < 3; q++)
    {
        load_quad(h + 4 * q, window + 4 * q);
    }
    for (int first = 0; first < count; first += 16)
    {
#pragma unroll
        for (int q = 0; q < 4; q++)
        {
            if (first + 4 * q >= count)
            {
                break;
            }
            load_quad(h + first + 4 * q + 12, window + (4 * q + 12) % 16);
#pragma unroll
            for (int u = 0; u < 4; u++)
            {
                const int i = first + 4 * q + u;
                if (i >= count)
                {
                    break;
                }
                const R e = even[32 * i], o = Half ? R(0) : odd[32 * i];
#pragma unroll
                for (int k = 0; k < T; k++)
                {
                    if (!Half || (u + k) % 2 == 0)
                    {
                        sum[k] += window[(4 * q + u + k) % 16] * ((u + k) % 2 == 0 ? e : o);
                    }
                }
            }
        }
    }
}

/* Outputs k0 .. k0 + T - 1 of column (l, im) from all columns of the input. characters: those in w, all 8 or the 2 for
 * the outputs' character in x and y. */
template <int T, bool Half, class R>
static __device__ __forceinline__ void outputs(const SymmetricArguments<R>& a,
                                               const SymmetricGroup&        g,
                                               SymmetricRun                 run,
                                               int                          characters,
                                               const R*                     w,
                                               R*                           out,
                                               size_t                       stride)
{
    const int p = a.p;
    const R*  h = a.folded + static_cast<size_t>(g.reference) * a.folded_size + run.first;
    R         sum[T];
#pragma unroll
    for (int k = 0; k < T; k++)
    {
        sum[k] = 0;
    }
    const int own = fold_character(run.l, run.l, run.im);
    for (int m = 0; m <= p; m++)
    {
        for (int im = 0; im <= (m > 0); im++)
        {
            const int c = own ^ fold_character(m, m, im); /* the lowest bit, for z, is the parity of i + k */
            if (c & g.zero & 6)
            {
                continue;
            }
            const int at   = im ? harm_im(p, m, m) : harm_re(p, m, m);
            const R*  even = w + ((characters == 8 ? (c & 6) : 0) * a.num_coef + at) * 32;
            segment<T, Half>(h + ((m * (p + 1) + run.l) * 4 + 2 * run.im + im) * a.stride, even, even + a.num_coef * 32,
                             p + 1 - m, sum);
        }
    }
#pragma unroll
    for (int k = 0; k < T; k++)
    {
        if (k < run.count)
        {
            out[k * stride] += sum[k];
        }
    }
}

template <bool Half, class R>
static __device__ void outputs_of_run(const SymmetricArguments<R>& a,
                                      const SymmetricGroup&        g,
                                      SymmetricRun                 run,
                                      int                          characters,
                                      const R*                     w,
                                      R*                           out,
                                      size_t                       stride)
{
    /* only a few sizes, as the instruction cache has to hold the code of all */
    if (run.count > 10)
    {
        outputs<c_symmetricRun, Half>(a, g, run, characters, w, out, stride);
    }
    else if (run.count > 7)
    {
        outputs<10, Half>(a, g, run, characters, w, out, stride);
    }
    else if (run.count > 4)
    {
        outputs<7, Half>(a, g, run, characters, w, out, stride);
    }
    else
    {
        outputs<4, Half>(a, g, run, characters, w, out, stride);
    }
}

/* Signed sums over the sources of a group. Returns whether there is any source, the same for all warps. */
template <class R>
static __device__ bool signed_sums(
    const SymmetricArguments<R>& a, const SymmetricGroup& g, const int* near, int characters, int pass, int warp, R* w)
{
    int  source[8];
    bool any = false;
#pragma unroll
    for (int s = 0; s < 8; s++)
    {
        source[s] = g.near[s] < 0 ? a.lists.num : a.lists.child[8 * static_cast<size_t>(near[g.near[s]]) + g.octant[s]];
        any       = any || source[s] != a.lists.num;
    }
    if (!__any_sync(0xffffffffu, any))
    {
        return false;
    }
#pragma unroll 2
    for (int f = warp; f < a.num_coef; f += a.schedule.warps)
    {
        R v[8];
#pragma unroll
        for (int s = 0; s < 8; s++)
        {
            v[s] = g.near[s] < 0 ? R(0) : a.multipole[f * a.lists.stride + source[s]];
        }
        hadamard(v);
        if (characters == 8)
        {
#pragma unroll
            for (int c = 0; c < 8; c++)
            {
                w[(c * a.num_coef + f) * 32] = v[c];
            }
        }
        else
        {
            const int c              = (a.schedule.character[f] ^ pass) & 6;
            w[f * 32]                = c == 0 ? v[0] : c == 2 ? v[2] : c == 4 ? v[4] : v[6];
            w[(a.num_coef + f) * 32] = c == 0 ? v[1] : c == 2 ? v[3] : c == 4 ? v[5] : v[7];
        }
    }
    return true;
}

/* A barrier of the warps of a team. */
static __device__ __forceinline__ void wait_for_team(int team, int warps)
{
    asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "r"(32 * warps) : "memory");
}

/* The products of one group for all outputs of this warp. */
template <class R>
static __device__ __forceinline__ void multiply(const SymmetricArguments<R>& a,
                                                const SymmetricGroup&        g,
                                                int                          warp,
                                                int                          characters,
                                                bool                         is_target,
                                                int                          target,
                                                const R*                     w,
                                                R*                           sums)
{
    for (int r = a.schedule.start[blockIdx.y][warp]; r < a.schedule.start[blockIdx.y][warp + 1]; r++)
    {
        const SymmetricRun run    = a.schedule.run[r];
        const int          at     = (run.im ? harm_im(a.p, run.l, run.l) : harm_re(a.p, run.l, run.l)) + run.first;
        R*                 out    = characters == 8 ? sums + at * 32 : a.local + at * a.lists.stride + target;
        const size_t       stride = characters == 8 ? 32 : a.lists.stride;
        if (characters == 8 || is_target)
        {
            g.zero & 1 ? outputs_of_run<true>(a, g, run, characters, w, out, stride)
                       : outputs_of_run<false>(a, g, run, characters, w, out, stride);
        }
    }
}

/* blockIdx.x: 32 targets, of slab blockIdx.x % 8; blockIdx.y: x-y-character of outputs if there are four passes. Team i
 * of T teams of warps has groups i, i + T, .. */
template <class R>
__global__ void __launch_bounds__(c_maxThreads) symmetric(SymmetricArguments<R> a)
{
    extern __shared__ double memory[];
    const int                slab = blockIdx.x % 8, first = a.lists.slab[slab] + 32 * (blockIdx.x / 8);
    if (first >= a.lists.slab[slab + 1])
    {
        return;
    }
    const int  lane = threadIdx.x % 32, team = threadIdx.x / 32 / a.schedule.warps, teams = a.schedule.teams;
    const int  warp       = threadIdx.x / 32 % a.schedule.warps;
    const int  characters = gridDim.y == 1 ? 8 : 2, pass = 2 * blockIdx.y, expansion = a.num_coef * 32;
    const bool is_target = first + lane < a.lists.slab[slab + 1];
    const int  target    = is_target ? first + lane : a.lists.slab[slab + 1] - 1;
    const int* near      = a.lists.near + static_cast<size_t>(a.lists.parent[target]) * a.lists.num_near;
    R*         all_sums  = reinterpret_cast<R*>(memory) + lane; /* of each team, if there are eight characters */
    R*         w         = all_sums + ((characters == 8 ? teams : 0) + team * characters) * expansion;
    for (int f = threadIdx.x / 32; f < a.num_coef * teams && characters == 8; f += blockDim.x / 32)
    {
        all_sums[f * 32] = 0;
    }
    __syncthreads();
    for (int i = team; i < a.num_groups[slab]; i += teams)
    {
        const SymmetricGroup g = a.group[slab][i];
        if (signed_sums(a, g, near, characters, pass, warp, w))
        {
            wait_for_team(team, a.schedule.warps);
            multiply(a, g, warp, characters, is_target, target, w, all_sums + team * expansion);
            wait_for_team(team, a.schedule.warps);
        }
    }
    __syncthreads();
    for (int f = threadIdx.x / 32; f < a.num_coef && characters == 8 && is_target; f += blockDim.x / 32)
    {
        R sum = a.local[f * a.lists.stride + target];
        for (int t = 0; t < teams; t++)
        {
            sum += all_sums[t * expansion + f * 32];
        }
        a.local[f * a.lists.stride + target] = sum;
    }
}

template <class R>
static gmxfmm_status
launch(fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower, cudaStream_t stream)
{
    SymmetricArguments<R> a;
    a.lists       = octree_lists(ops, upper, lower);
    a.schedule    = ops->symmetric;
    a.p           = ops->order;
    a.num_coef    = ops->num_coef;
    a.folded_size = static_cast<int>(ops->folded_size);
    a.stride      = folded_stride(ops->order);
    a.folded      = octree_table<R>(ops, ops->folded_at);
    a.multipole   = static_cast<const R*>(lower->multipole);
    a.local       = static_cast<R*>(lower->local);
    int runs      = 0;
    for (int c = 0; c < 8; c++)
    {
        const int blocks = (lower->slab[c + 1] - lower->slab[c] + 31) / 32;
        runs             = blocks > runs ? blocks : runs;
        a.group[c]       = ops->group[c];
        a.num_groups[c]  = ops->num_groups[c];
    }
    if (runs == 0)
    {
        return GMXFMM_OK;
    }
    const int    expansions = a.schedule.passes == 1 ? 9 * a.schedule.teams : 2;
    const size_t bytes      = static_cast<size_t>(expansions * ops->num_coef * 32) * sizeof(R);
    FMM_CUDA(ops, allow_shared(&ops->allowed, symmetric<R>));
    const dim3 grid(static_cast<unsigned>(8 * runs), static_cast<unsigned>(a.schedule.passes));
    symmetric<R><<<grid, static_cast<unsigned>(32 * a.schedule.warps * a.schedule.teams), bytes, stream>>>(a);
    FMM_CUDA(ops, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_octree_m2l_symmetric(fmm_octree_operators*   ops,
                                       const fmm_octree_level* upper,
                                       const fmm_octree_level* lower,
                                       void*                   stream)
{
    if (ops->order > FMM_OCTREE_MAX_ORDER)
    {
        return fmm_octree_failed(ops, GMXFMM_ERROR_UNSUPPORTED, "order beyond what `symmetric` has", __FILE__,
                                 __LINE__);
    }
    return ops->is_double ? launch<double>(ops, upper, lower, static_cast<cudaStream_t>(stream))
                          : launch<float>(ops, upper, lower, static_cast<cudaStream_t>(stream));
}
