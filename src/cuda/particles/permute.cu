/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Positions into the order and the frames of cells; and the moments that a virial or vacuum around the box needs, or
 * that P2M leaves to a kernel of its own. */
#include "cuda/particles/particles.h"
#include "cuda/runtime/sums.h"
#include "fmm/math/strain.h"

enum
{
    c_threads        = 256,
    c_numMoments     = 12,
    c_dipolesMoments = 15 /* and the sum of dipoles */
};

/* How particles that have left their cells are found. */
struct LeftArgs
{
    int   exponent; /* of |y|^2; 0: nobody looks */
    float scale;    /* 1 / a^2, units u */
    bool  skewed;   /* cells have no right angles */
};

struct PermuteArgs
{
    Geometry              g;
    const BoxValues*      box;
    double                inverse_n[3], given_scale;
    int                   n;
    const int *           sorted, *cell_of;
    const fmm_leaf_place* leaves; /* of several levels; NULL: anchors have the places of cells */
    const Anchor*         anchor;
    StepResults*          results;
    const AssignResults*  assigned;
    const ChargeResults*  charges;
    const int*            cell_start;
    PositionCopies        copies;
    LeftArgs              left;
    const double*         dipoles; /* DeviceCharges.dipoles; NULL: none */
};

/* Whether a position is so many boxes away that cells would cost it digits. */
static __device__ inline bool is_beyond(const BoxValues* box, const double* x)
{
    return fabs(x[0]) > box->reach[0] || fabs(x[1]) > box->reach[1] || fabs(x[2]) > box->reach[2];
}

/* Coordinates t in cells of a position, anew from its image in the box. One that no cell can hold becomes NaN. */
static __device__ inline void into_box(const Geometry& g, const BoxValues* box, const double* x, double* t)
{
    double image[3] = {x[0], x[1], x[2]};
    if (!fmm_has_cell(t))
    {
        t[0] = t[1] = t[2] = nan("");
        return;
    }
    fmm_into_box(box->given, box->in_basis, g.periodic, g.n, t, image);
    fmm_in_cells(box->origin, box->to_cells, image, t);
}

/* Of many particles one block of so many adds to the sums, whose ratios are those of all: blocks are in cells' order.
 */
enum
{
    c_manyParticles = 32768,
    c_blocksOfMany  = 4
};

/* Whether a block's particles are in the sums. How far the worst one is outside its cell all blocks tell. */
static __device__ inline bool is_in_sums(int n)
{
    return n < c_manyParticles || blockIdx.x % c_blocksOfMany == 0;
}

/* A particle's part of LeftSums. */
struct LeftPart
{
    float now, then, largest; /* w, and the largest coordinate in the cell */
};

/* w of a vector in units of the cell's edge. */
static __device__ float left_weight(const LeftArgs& a, const double* y, float inverse_edge)
{
    const float y0 = static_cast<float>(y[0]) * inverse_edge, y1 = static_cast<float>(y[1]) * inverse_edge,
                y2    = static_cast<float>(y[2]) * inverse_edge;
    const float ratio = (y0 * y0 + y1 * y1 + y2 * y2) * a.scale, most = static_cast<float>(FMM_LEFT_MOST);
    float       base = ratio < most ? ratio : most, w = 1;
    for (int bits = a.exponent; bits > 0; bits >>= 1)
    {
        w *= bits & 1 ? base : 1;
        base *= base;
    }
    return w;
}

/* Of a particle at t in its cell, in cells of the last level, Cartesian y. */
static __device__ LeftPart
left_part(const PermuteArgs& a, const Anchor& anchor, const double* t, const double* y, double edge)
{
    const float  inverse_edge = static_cast<float>(1 / edge);
    const double at[3]        = {static_cast<double>(anchor.reference[0]), static_cast<double>(anchor.reference[1]),
                                 static_cast<double>(anchor.reference[2])};
    LeftPart     part         = {0, 0, 0};
    if (is_in_sums(a.n))
    {
        double then[3];
        fmm_cartesian(a.box->cell, at, then);
        part.now  = left_weight(a.left, y, inverse_edge);
        part.then = left_weight(a.left, then, inverse_edge);
    }
    for (int d = 0; d < 3 && !a.left.skewed; d++)
    {
        part.largest = fmaxf(part.largest, fabsf(static_cast<float>(t[d])) * inverse_edge);
    }
    for (int v = 0; v < FMM_VORONOI && a.left.skewed; v++)
    {
        const double* face = a.box->cell_voronoi.vectors[v];
        const float   f0 = static_cast<float>(face[0]), f1 = static_cast<float>(face[1]),
                    f2 = static_cast<float>(face[2]);
        const float along =
            static_cast<float>(y[0]) * f0 + static_cast<float>(y[1]) * f1 + static_cast<float>(y[2]) * f2;
        part.largest = fmaxf(part.largest, along / (f0 * f0 + f1 * f1 + f2 * f2));
    }
    return part;
}

/* Of numbers that are not negative, bits are in the order of the numbers; of two the particle of lower number. */
static __device__ unsigned long long farthest_key(const LeftPart& part, unsigned particle)
{
    return static_cast<unsigned long long>(__float_as_uint(part.largest)) << 32 | (~particle);
}

/* The largest of a warp's numbers. */
static __device__ unsigned warp_largest(unsigned mine)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_max_sync(0xffffffffu, mine);
#else
    for (int step = 16; step > 0; step /= 2)
    {
        mine = max(mine, __shfl_xor_sync(0xffffffffu, mine, step));
    }
    return mine;
#endif
}

/* Adds the parts of a block's particles, with squares of their charges, to the sums. All threads must call this. */
static __device__ void add_left(const LeftPart& part, double q2, unsigned particle, bool in_sums, LeftSums* to)
{
    constexpr int     c_warps = c_threads / 32;
    __shared__ double sums[c_warps][3];
    const unsigned    bits = __float_as_uint(part.largest), most = warp_largest(bits);
    if (bits == most && __uint_as_float(most) > 0.5f)
    {
        atomicMax(&to->farthest, farthest_key(part, particle));
    }
    if (!in_sums) /* nor is any thread of the block */
    {
        return;
    }
    double sum[3] = {q2 * static_cast<double>(part.now), q2 * static_cast<double>(part.then), q2};
    for (int step = 16; step > 0; step /= 2)
    {
        for (int k = 0; k < 3; k++)
        {
            sum[k] += __shfl_down_sync(0xffffffffu, sum[k], step);
        }
    }
    if (threadIdx.x % 32 == 0)
    {
        for (int k = 0; k < 3; k++)
        {
            sums[threadIdx.x / 32][k] = sum[k];
        }
    }
    __syncthreads();
    if (threadIdx.x < 3)
    {
        double total = 0;
        for (int w = 0; w < c_warps; w++)
        {
            total += sums[w][threadIdx.x];
        }
        atomicAdd(threadIdx.x == 0 ? &to->now : threadIdx.x == 1 ? &to->then : &to->charge2, total);
    }
}

/* A particle in its cell: the caller's position, that in cells relative to the centre, the same Cartesian, the cell's
 * edge in cells of the last level, and whether the particle is too far away to have an expansion. */
struct InCell
{
    double from[3], t[3], y[3], edge;
    bool   lost;
};

/* Of particle s, whose image is the one nearest to its position at assign. */
template <class X>
static __device__ inline InCell in_cell(const PermuteArgs& a, const Anchor& anchor, int s, const X* x)
{
    const X* place = x + 3 * static_cast<size_t>(a.sorted[s]);
    InCell   p     = {{static_cast<double>(place[0]), static_cast<double>(place[1]), static_cast<double>(place[2])},
                      {},
                      {},
                      1,
                      false};
    if (a.leaves != NULL)
    {
        const fmm_leaf_place leaf = a.leaves[a.cell_of[s]];
        p.edge                    = leaf.edge;
        for (int d = 0; d < 3; d++)
        {
            p.t[d] = (p.from[d] - leaf.centre[d]) * a.box->to_cells[4 * d];
        }
    }
    else
    {
        fmm_in_cells(a.box->origin, a.box->to_cells, p.from, p.t);
        if (is_beyond(a.box, p.from))
        {
            into_box(a.g, a.box, p.from, p.t);
        }
        for (int d = 0; d < 3; d++)
        {
            p.t[d] -= anchor.place[d];
            p.t[d] -= a.g.n[d] * rint((p.t[d] - static_cast<double>(anchor.reference[d])) * a.inverse_n[d]);
        }
    }
    fmm_cartesian(a.box->cell, p.t, p.y);
    const double far_away = a.g.far_away * p.edge;
    p.lost                = !(fabs(p.y[0]) < far_away && fabs(p.y[1]) < far_away && fabs(p.y[2]) < far_away);
    return p;
}

/* What it adds to LeftSums where somebody looks. The largest coordinate of one that is lost tells whether its position
 * is finite. */
static __device__ inline LeftPart look_at(const PermuteArgs& a, const Anchor& anchor, const InCell& p)
{
    LeftPart left = {0, 0, 0};
    if (a.left.exponent > 0)
    {
        left = left_part(a, anchor, p.t, p.y, p.edge);
    }
    if (p.lost)
    {
        const bool finite = fabs(p.from[0]) + fabs(p.from[1]) + fabs(p.from[2]) < INFINITY &&
                            fabs(p.t[0]) + fabs(p.t[1]) + fabs(p.t[2]) < INFINITY;
        left.largest = finite ? INFINITY : 0;
    }
    return left;
}

/* Position of a particle relative to its cell's centre. given: NULL, or the caller's numbers in the same order, for
 * P2P. scaled: of leaves of several levels, the same in their units. SEND: there are copies; neighbouring threads store
 * neighbouring particles there, so that the way to another device is used well. */
template <class R, class X, bool SEND>
static __device__ LeftPart place_particle(
    const PermuteArgs& a, const Anchor& anchor, int s, const X* x, Vec4<R>* xq, Vec4<R>* given, Vec4<R>* scaled)
{
    const InCell   p    = in_cell(a, anchor, s, x);
    const LeftPart left = look_at(a, anchor, p);
    double         y[3] = {p.y[0], p.y[1], p.y[2]};
    /* A position too far from the cell becomes NaN, and so do the forces; by this NaN write_output tells the error from
     * coincident particles. */
    if (p.lost)
    {
        y[0] = y[1] = y[2] = nan("");
    }
    if (s == 0)
    {
        a.results->bad_positions = a.results->not_finite = c_none;
        a.results->unplaced                              = a.assigned->bad;
        a.results->bad_charge                            = a.charges->bad;
    }
    const R q = static_cast<R>(anchor.charge);
    xq[s]     = {static_cast<R>(y[0]), static_cast<R>(y[1]), static_cast<R>(y[2]), q};
    for (int k = 0; SEND && k < a.copies.num; k++)
    {
        const PositionCopy& to = a.copies.copy[k];
        if (s >= a.cell_start[to.begin_cell] && s < a.cell_start[to.end_cell])
        {
            static_cast<Vec4<R>*>(to.xq)[s] = {static_cast<R>(y[0]), static_cast<R>(y[1]), static_cast<R>(y[2]), q};
        }
    }
    if (a.leaves != NULL)
    {
        const double unit = 1 / p.edge; /* a power of two */
        scaled[s]         = {static_cast<R>(y[0] * unit), static_cast<R>(y[1] * unit), static_cast<R>(y[2] * unit), q};
    }
    if (given != NULL)
    {
        given[s] = {static_cast<R>(p.from[0] * a.given_scale), static_cast<R>(p.from[1] * a.given_scale),
                    static_cast<R>(p.from[2] * a.given_scale), q};
    }
    return left;
}

/* Dipole of particle s in the plan's axes, unit u, and of leaves of several levels in their units, too. Returns what
 * LeftSums take for the square of a charge in it: at the distance a that of (p + 1) |mu| / a (cpu/particles/charges.c).
 */
template <class R>
static __device__ double place_dipole(const PermuteArgs& a, int s, Vec4<R>* mu, Vec4<R>* scaled)
{
    const double *given = a.dipoles + 3 * static_cast<size_t>(a.sorted[s]), *axes = a.box->axes;
    const double  one  = a.box->inverse_u;
    const double  unit = a.leaves != NULL ? 1 / a.leaves[a.cell_of[s]].edge : 1; /* a power of two */
    double        own[3];
    for (int d = 0; d < 3; d++)
    {
        own[d] = (axes[3 * d] * given[0] + axes[3 * d + 1] * given[1] + axes[3 * d + 2] * given[2]) * one;
    }
    mu[s] = {static_cast<R>(own[0]), static_cast<R>(own[1]), static_cast<R>(own[2]), 0};
    if (a.leaves != NULL)
    {
        scaled[s] = {static_cast<R>(own[0] * unit), static_cast<R>(own[1] * unit), static_cast<R>(own[2] * unit), 0};
    }
    const double as_charge = a.left.exponent * unit;
    return as_charge * as_charge * static_cast<double>(a.left.scale) *
           (own[0] * own[0] + own[1] * own[1] + own[2] * own[2]);
}

/* Where a kernel stores particles, sorted: as of place_particle, and dipoles. */
template <class R>
struct Placed
{
    Vec4<R>*xq, *given, *scaled, *mu, *scaled_mu;
};

template <class R, class X, bool SEND, bool DIPOLES>
__global__ void __launch_bounds__(c_threads)
    permute(const __grid_constant__ PermuteArgs a, const X* x, const __grid_constant__ Placed<R> to)
{
    const int s      = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    LeftPart  left   = {0, 0, 0};
    double    q2     = 0;
    unsigned  number = 0;
    if (s < a.n)
    {
        const Anchor anchor = a.anchor[s];
        q2                  = anchor.charge * anchor.charge;
        number              = static_cast<unsigned>(a.sorted[s]);
        left                = place_particle<R, X, SEND>(a, anchor, s, x, to.xq, to.given, to.scaled);
        if constexpr (DIPOLES)
        {
            q2 += place_dipole(a, s, to.mu, to.scaled_mu);
        }
    }
    if (a.left.exponent > 0)
    {
        add_left(left, q2, number, is_in_sums(a.n), &a.results->left_sums[blockIdx.x / c_blocksOfMany % c_leftSums]);
    }
    else if (left.largest > 0) /* it is lost, which is an error in any case */
    {
        atomicMax(&a.results->left_sums[0].farthest, farthest_key(left, number));
    }
}

/* Looks for particles that have left their cells, where `permute` did not; of charges without dipoles. */
template <class X>
__global__ void __launch_bounds__(c_threads) look(const __grid_constant__ PermuteArgs a, const X* x)
{
    const int s      = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    LeftPart  left   = {0, 0, 0};
    double    q2     = 0;
    unsigned  number = 0;
    if (s < a.n)
    {
        const Anchor anchor = a.anchor[s];
        q2                  = anchor.charge * anchor.charge;
        number              = static_cast<unsigned>(a.sorted[s]);
        left                = look_at(a, anchor, in_cell(a, anchor, s, x));
    }
    add_left(left, q2, number, is_in_sums(a.n), &a.results->left_sums[blockIdx.x / c_blocksOfMany % c_leftSums]);
}

struct MomentsArgs
{
    Geometry      g;
    int           n, edge; /* edge: of Leaves */
    const int *   sorted, *cell_of;
    double*       partial;
    StepResults*  results;
    const double *dipoles, *inverse_u; /* DeviceCharges.dipoles, BoxValues.inverse_u */
};

/* What the dipole of particle i at y adds to its moments; there is a background, and the plan has the caller's axes. */
static __device__ inline void add_dipole(const MomentsArgs& a, int64_t i, const double* y, double* sum)
{
    const double* given = a.dipoles + 3 * i;
    double        mu[3];
    for (int d = 0; d < 3; d++)
    {
        mu[d] = given[d] * *a.inverse_u;
        sum[d] += mu[d];
        sum[9 + d] += given[d];
        sum[12 + d] += given[d];
    }
    fmm_add_symmetric(2, mu, y, sum + 3);
}

/* Dipole, quadrupole (xx, yy, zz, xy, xz, yz), and sum q x of the caller's positions. With dipoles these are added, and
 * their sum follows. */
template <class R, class X, int NUM>
__global__ void __launch_bounds__(c_threads) moments(MomentsArgs a, const X* x, const Vec4<R>* xq)
{
    double sum[NUM] = {0};
    for (int s = static_cast<int>(blockIdx.x * c_threads + threadIdx.x); s < a.n;
         s += static_cast<int>(gridDim.x) * c_threads)
    {
        const int64_t i         = a.sorted[s];
        const Vec4<R> v         = xq[s];
        double        offset[3] = {0, 0, 0};
        if (a.edge > 1)
        {
            root_offset(a.g, a.edge, a.cell_of[s], offset);
        }
        const double y[3] = {offset[0] + static_cast<double>(v.x), offset[1] + static_cast<double>(v.y),
                             offset[2] + static_cast<double>(v.z)};
        const double q    = static_cast<double>(v.w);
        for (int d = 0; d < 3; d++)
        {
            sum[d] += q * y[d];
            sum[3 + d] += q * y[d] * y[d];
            sum[9 + d] += q * static_cast<double>(x[3 * i + d]);
        }
        sum[6] += q * y[0] * y[1];
        sum[7] += q * y[0] * y[2];
        sum[8] += q * y[1] * y[2];
        if constexpr (NUM == static_cast<int>(c_dipolesMoments))
        {
            add_dipole(a, i, y, sum);
        }
    }
    block_sums<c_threads, 8>(sum, a.partial + static_cast<size_t>(blockIdx.x) * NUM);
    if (is_last_block(&a.results->moments_done))
    {
        const double total = column_sum<c_threads>(a.partial, static_cast<int>(gridDim.x), NUM);
        if (threadIdx.x < NUM)
        {
            a.results->moments[threadIdx.x] = total;
        }
        if (threadIdx.x == 0)
        {
            a.results->moments_done = 0;
        }
    }
}

/* Targets stay where they are. */
static LeftArgs left_args(const gmxfmm_plan* plan, const ParticleSet* set)
{
    const fmm_cells* c     = &plan->domain.cells;
    const bool       looks = plan->options.check != GMXFMM_CHECK_OFF && set == &plan->device->particles.sources;
    LeftArgs         a;
    a.exponent = looks ? plan->far.order + 1 : 0;
    a.scale    = static_cast<float>(1 / (FMM_LEFT_A2 * c->lambda * c->lambda));
    a.skewed   = !c->rectangular;
    return a;
}

static PermuteArgs make_args(const gmxfmm_plan* plan, const ParticleSet* set, const PositionCopies& copies)
{
    const fmm_device* d = plan->device;
    PermuteArgs       a;
    a.g           = make_geometry(plan);
    a.box         = d->domain.box.as<BoxValues>();
    a.n           = set->n;
    a.sorted      = set->sorted.as<int>();
    a.cell_of     = set->cell_of.as<int>();
    a.leaves      = fmm_is_adaptive(plan) ? d->far.tree.leaves.place.as<fmm_leaf_place>() : NULL;
    a.anchor      = set->anchor.as<Anchor>();
    a.results     = d->output.results.as<StepResults>();
    a.assigned    = d->particles.assign_results.as<AssignResults>();
    a.charges     = d->charges.results.as<ChargeResults>();
    a.given_scale = fmm_has_given(plan) ? fmm_given_scale(plan) : 0;
    a.cell_start  = set->cell_start.as<int>();
    a.copies      = copies;
    a.left        = left_args(plan, set);
    a.dipoles     = fmm_has_dipoles(plan) && set == &d->particles.sources ? d->charges.dipoles.as<double>() : NULL;
    for (int i = 0; i < 3; i++)
    {
        a.inverse_n[i] = a.g.periodic[i] ? 1.0 / a.g.n[i] : 0; /* no period is taken off */
    }
    return a;
}

/* How a set of particles is placed. looks: whether those are found that have left their cells. */
struct Placing
{
    const ParticleSet*    set;
    const PositionCopies& copies;
    bool                  looks;
};

template <class R, class X>
static gmxfmm_status launch(gmxfmm_plan* plan, const Placing& wanted, const void* x, cudaStream_t stream)
{
    const ParticleSet* set = wanted.set;
    PermuteArgs        a   = make_args(plan, set, wanted.copies);
    a.left.exponent        = wanted.looks ? a.left.exponent : 0;
    if (a.n > 0)
    {
        const int blocks = blocks_for(a.n, c_threads);
        const X*  from   = static_cast<const X*>(x);
        Placed<R> to;
        to.xq        = set->xq.as<Vec4<R>>();
        to.given     = set->given.as<Vec4<R>>();
        to.scaled    = set->scaled.as<Vec4<R>>();
        to.mu        = set->mu.as<Vec4<R>>();
        to.scaled_mu = set->scaled_mu.as<Vec4<R>>();
        a.dipoles != NULL  ? permute<R, X, false, true><<<blocks, c_threads, 0, stream>>>(a, from, to)
        : a.copies.num > 0 ? permute<R, X, true, false><<<blocks, c_threads, 0, stream>>>(a, from, to)
                           : permute<R, X, false, false><<<blocks, c_threads, 0, stream>>>(a, from, to);
        FMM_CUDA(plan, cudaGetLastError());
    }
    return GMXFMM_OK;
}

static gmxfmm_status permute_set(gmxfmm_plan* plan, const Placing& wanted, const void* x, cudaStream_t stream)
{
    if (plan->options.array_type == GMXFMM_DOUBLE)
    {
        return is_double(plan) ? launch<double, double>(plan, wanted, x, stream)
                               : launch<float, double>(plan, wanted, x, stream);
    }
    return is_double(plan) ? launch<double, float>(plan, wanted, x, stream)
                           : launch<float, float>(plan, wanted, x, stream);
}

gmxfmm_status
fmm_cuda_permute(gmxfmm_plan* plan, const void* x, const PositionCopies& copies, bool looks, cudaStream_t stream)
{
    const PositionCopies none = {};
    fmm_device*          d    = plan->device;
    FMM_TRY(permute_set(plan, {&d->particles.sources, copies, looks}, x, stream));
    return permute_set(plan, {&d->particles.targets, none, false}, d->particles.target_x.memory, stream);
}

gmxfmm_status fmm_cuda_look(gmxfmm_plan* plan, const void* x, cudaStream_t stream)
{
    const PositionCopies none = {};
    const PermuteArgs    a    = make_args(plan, &plan->device->particles.sources, none);
    if (a.n > 0 && a.left.exponent > 0)
    {
        const int blocks = blocks_for(a.n, c_threads);
        plan->options.array_type == GMXFMM_DOUBLE
            ? look<<<blocks, c_threads, 0, stream>>>(a, static_cast<const double*>(x))
            : look<<<blocks, c_threads, 0, stream>>>(a, static_cast<const float*>(x));
        FMM_CUDA(plan, cudaGetLastError());
    }
    return GMXFMM_OK;
}

template <class R, class X>
static void launch_moments(const gmxfmm_plan* plan, const void* x, cudaStream_t stream)
{
    const fmm_device*  d   = plan->device;
    const ParticleSet& set = d->particles.sources;
    MomentsArgs        a;
    a.g              = make_geometry(plan);
    a.n              = fmm_is_bulk(plan) ? set.n : 0; /* without a background they have to be zero, not unknown */
    a.edge           = d->far.path->expansions(plan).leaves.edge;
    a.sorted         = set.sorted.as<int>();
    a.cell_of        = set.cell_of.as<int>();
    a.partial        = d->output.partial.as<double>();
    a.results        = d->output.results.as<StepResults>();
    const int needed = blocks_for(a.n, c_threads), few = needed < c_sumBlocks ? needed : c_sumBlocks;
    const int blocks    = few > 0 ? few : 1;
    a.dipoles           = d->charges.dipoles.as<double>();
    a.inverse_u         = &d->domain.box.as<BoxValues>()->inverse_u;
    const X*       from = static_cast<const X*>(x);
    const Vec4<R>* xq   = set.xq.as<Vec4<R>>();
    fmm_has_dipoles(plan) ? moments<R, X, c_dipolesMoments><<<blocks, c_threads, 0, stream>>>(a, from, xq)
                            : moments<R, X, c_numMoments><<<blocks, c_threads, 0, stream>>>(a, from, xq);
}

gmxfmm_status fmm_cuda_moments(gmxfmm_plan* plan, const void* x, cudaStream_t stream)
{
    if (plan->options.array_type == GMXFMM_DOUBLE)
    {
        is_double(plan) ? launch_moments<double, double>(plan, x, stream)
                        : launch_moments<float, double>(plan, x, stream);
    }
    else
    {
        is_double(plan) ? launch_moments<double, float>(plan, x, stream)
                        : launch_moments<float, float>(plan, x, stream);
    }
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}
