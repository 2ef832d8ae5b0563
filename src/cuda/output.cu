/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Results in the caller's order and units, without the far excluded pairs; energies and virial. */
#include <algorithm>

#include "cuda/output.h"
#include "cuda/convolution/convolution.h"
#include "cuda/near/near.h"
#include "cuda/near/uncharged.h"
#include "cuda/runtime/sums.h"
#include "fmm/math/strain.h"

extern "C"
{
#include "fmm/left.h"
}

enum
{
    c_threads = 256,
    c_blocks  = 3, /* of write_output on a multiprocessor, as registers of sums_elsewhere would leave room for fewer */
    /* 0..5 symmetric part of y (x) q E of the far field; 6 and 7 twice the near and the far energy; 8 energy and 9..14
     * virial of far excluded pairs; 15..20 near virial */
    c_numRows = 21,
    /* With dipoles 6 and 7 are q phi, and there are mu . E of the near and the far field, and the sum of torques. */
    c_nearDipoles = 21,
    c_farDipoles  = 22,
    c_torques     = 23,
    c_dipolesRows = 26
};

struct OutputArgs
{
    Geometry             g;
    const BoxValues*     box;
    int                  n, bulk, slab, vacuum, num_far_rows; /* bulk: there is a background */
    int                  num_near_rows; /* of the near virial less positions times near forces; -1: of tiles, all */
    int                  edge;          /* of Leaves */
    const int *          position, *cell_of, *far_start;
    const FarPair*       far_pairs; /* NULL: none */
    const void*          given;     /* of leaves of several levels: positions as P2P has them; NULL: others */
    const double*        charge;    /* caller's order */
    const int*           slot;      /* of each particle the place of its potential in kept, or -1; NULL: none is kept */
    double*              kept;
    double*              partial;
    const double*        far_virial;  /* num_far_rows x 5 */
    const double*        tree_strain; /* 6, of the octree's translations; or NULL */
    StepResults*         results;
    const AssignResults* assigned; /* num_tiles */
    const double*        total_charge;
    double               near_unit;  /* u over the unit of P2P's sums */
    double               f;          /* prefactor */
    int                  limited;    /* min_distance */
    double               background; /* 4 pi / 3 over the volume of the box in u^3 */
    fmm_left_limits      limits;     /* of particles that have left their cells */
    int                  fails;      /* whether more is an error */
    gmxfmm_device_output out;
};

/* What output needs of a plan with dipoles. */
template <class R>
struct DipoleOutput
{
    DipoleArgs<R>      pairs; /* as P2P has them */
    const Symmetric<R>*near, *far;
    int                gradient; /* whether they were computed */
};

/* From the image of its source to a target of a far excluded pair, unit u. */
template <class R>
static __device__ inline void far_vector(const OutputArgs& a, const Vec4<R>* xq, int s, const FarPair& pair, double* r)
{
    const Vec4<R> target = xq[s], source = xq[pair.source];
    const double  t[3] = {static_cast<double>(pair.offset[0]), static_cast<double>(pair.offset[1]),
                          static_cast<double>(pair.offset[2])};
    if (a.given != NULL)
    {
        const Vec4<R>*given = static_cast<const Vec4<R>*>(a.given), from = given[pair.source], to = given[s];
        r[0] = (static_cast<double>(to.x) - static_cast<double>(from.x)) / a.near_unit;
        r[1] = (static_cast<double>(to.y) - static_cast<double>(from.y)) / a.near_unit;
        r[2] = (static_cast<double>(to.z) - static_cast<double>(from.z)) / a.near_unit;
        return;
    }
    fmm_cartesian(a.box->cell, t, r);
    r[0] += static_cast<double>(target.x) - static_cast<double>(source.x);
    r[1] += static_cast<double>(target.y) - static_cast<double>(source.y);
    r[2] += static_cast<double>(target.z) - static_cast<double>(source.z);
}

/* The far excluded pairs of target s are subtracted from its potential and field or, with SUMS, half of each pair's
 * energy and virial from the sums. */
template <bool SUMS, class R>
static __device__ void
take_far_pairs(const OutputArgs& a, const Vec4<R>* xq, int s, double* phi, double* e, double* sum)
{
    const Vec4<R> target = xq[s];
#pragma unroll 1
    for (int k = a.far_start[s]; k < a.far_start[s + 1]; k++)
    {
        const FarPair pair = a.far_pairs[k];
        double        r[3];
        far_vector(a, xq, s, pair, r);
        const double q   = static_cast<double>(xq[pair.source].w);
        const double inv = 1 / sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]), inv3 = inv * inv * inv;
        if (!SUMS)
        {
            *phi -= q * inv;
            for (int d = 0; d < 3; d++)
            {
                e[d] -= q * inv3 * r[d];
            }
            continue;
        }
        const double qq = 0.5 * static_cast<double>(target.w) * q, f = 0.5 * qq * inv3;
        sum[8] -= qq * inv;
        sum[9] += f * r[0] * r[0];
        sum[10] += f * r[1] * r[1];
        sum[11] += f * r[2] * r[2];
        sum[12] += f * r[0] * r[1];
        sum[13] += f * r[0] * r[2];
        sum[14] += f * r[1] * r[2];
    }
}

/* A particle's dipole, unit u; targets of their own have none. */
template <class R>
static __device__ inline dipole_vector dipole_of(const DipoleOutput<R>& d, int s)
{
    const dipole_vector none = {0, 0, 0};
    if (d.pairs.target_mu == NULL)
    {
        return none;
    }
    const Vec4<R> v = d.pairs.target_mu[s];
    return {static_cast<double>(v.x), static_cast<double>(v.y), static_cast<double>(v.z)};
}

static __device__ inline dipole_vector dipole_cross(const dipole_vector& a, const dipole_vector& b)
{
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

/* Force on a charge and a dipole. */
static __device__ inline dipole_vector
force_on(double q, const dipole_vector& mu, const dipole_vector& e, const double* g)
{
    return {q * e.x + g[0] * mu.x + g[3] * mu.y + g[4] * mu.z, q * e.y + g[3] * mu.x + g[1] * mu.y + g[5] * mu.z,
            q * e.z + g[4] * mu.x + g[5] * mu.y + g[2] * mu.z};
}

static __device__ inline bool has_source(double q, const dipole_vector& mu)
{
    return q != 0 || mu.x != 0 || mu.y != 0 || mu.z != 0;
}

/* As take_far_pairs with dipoles; e and g: field and gradient. Half of each pair's virial is its symmetric part. */
template <bool SUMS, class R>
static __device__ void take_far_dipoles(const OutputArgs&      a,
                                        const DipoleOutput<R>& d,
                                        const Vec4<R>*         xq,
                                        int                    s,
                                        double*                phi,
                                        dipole_vector*         e,
                                        double*                g,
                                        double*                sum)
{
    const double        q      = static_cast<double>(xq[s].w);
    const dipole_vector mu     = dipole_of(d, s);
    double              of_phi = 0, of_g[6] = {0}, lever[6] = {0};
    dipole_vector       of_e = {0, 0, 0};
#pragma unroll 1
    for (int k = a.far_start[s]; k < a.far_start[s + 1]; k++)
    {
        const FarPair pair = a.far_pairs[k];
        double        at[3];
        far_vector(a, xq, s, pair, at);
        const dipole_vector r = {at[0], at[1], at[2]};
        const double        w = 1 / sqrt(dipole_dot(r, r)), w2 = w * w;
        const dipole_source from  = dipole_see(static_cast<double>(xq[pair.source].w), dipole_of(d, pair.source), r, w);
        const dipole_vector field = dipole_field(&from);
        of_phi += from.potential * w;
        of_e.x += field.x * w2;
        of_e.y += field.y * w2;
        of_e.z += field.z * w2;
        if (SUMS)
        {
            dipole_add_lever(&from, dipole_force(&from, q, dipole_times(mu, w)), w, lever);
        }
        else
        {
            dipole_add_gradient(&from, w2 * w, of_g);
        }
    }
    if (!SUMS)
    {
        dipole_end_gradient(of_g);
        *phi -= of_phi;
        e->x -= of_e.x;
        e->y -= of_e.y;
        e->z -= of_e.z;
        for (int i = 0; i < 6; i++)
        {
            g[i] -= of_g[i];
        }
        return;
    }
    const dipole_vector torque = dipole_cross(mu, of_e);
    sum[8] -= 0.5 * (q * of_phi - dipole_dot(mu, of_e));
    sum[c_torques] -= torque.x;
    sum[c_torques + 1] -= torque.y;
    sum[c_torques + 2] -= torque.z;
    for (int i = 0; i < 6; i++)
    {
        sum[9 + i] += 0.25 * lever[i];
    }
}

/* On an octree the background's force multiplies the position relative to the root (THEORY (35)). The part relative to
 * the leaf is in the sums already; this adds that of the leaf's offset from the root. mu: a dipole, or NULL. */
static __device__ void
add_background(const OutputArgs& a, int s, double q, const double* mu, const double* y, double* sum)
{
    const double* m = a.results->moments;
    double        offset[3], f[3];
    root_offset(a.g, a.edge, a.cell_of[s], offset);
    for (int d = 0; d < 3; d++)
    {
        f[d] = q * a.background * (m[d] - *a.total_charge * (y[d] + offset[d]));
        f[d] -= mu != NULL ? a.background * *a.total_charge * mu[d] : 0;
    }
    fmm_add_symmetric(1, offset, f, sum);
}

/* Position times near force f: the part of the near virial, -1/2 the sum over pairs of (x_i - x_j - s) (x) f_ij, that
 * P2P does not compute. Positions are from the middle of the grid, for the least rounding. */
template <class R>
static __device__ void add_near_virial(const OutputArgs& a, int s, const Vec4<R>& y, const double* f, double* sum)
{
    int    c[3];
    double t[3], x[3];
    cell_place(a.g, a.cell_of[s], c);
    for (int d = 0; d < 3; d++)
    {
        t[d] = c[d] - 0.5 * a.g.inner[d];
    }
    fmm_cartesian(a.box->cell, t, x);
    x[0] += static_cast<double>(y.x);
    x[1] += static_cast<double>(y.y);
    x[2] += static_cast<double>(y.z);
    fmm_add_symmetric(-0.5, x, f, sum + 15);
}

template <class R>
static __device__ void
add_sums(const OutputArgs& a, int s, const Vec4<R>& y, const Vec4<R>& near, const Vec4<R>& far, double* sum)
{
    const double q = static_cast<double>(y.w);
    if (q == 0) /* near may not be finite then */
    {
        return;
    }
    sum[6] += q * static_cast<double>(near.w) * a.near_unit;
    sum[7] += q * static_cast<double>(far.w);
    if (a.out.virial != NULL)
    {
        const double r[3] = {static_cast<double>(y.x), static_cast<double>(y.y), static_cast<double>(y.z)};
        const double f[3] = {q * static_cast<double>(far.x), q * static_cast<double>(far.y),
                             q * static_cast<double>(far.z)};
        fmm_add_symmetric(1, r, f, sum);
        if (a.num_near_rows >= 0)
        {
            const double near_f[3] = {q * static_cast<double>(near.x), q * static_cast<double>(near.y),
                                      q * static_cast<double>(near.z)};
            add_near_virial(a, s, y, near_f, sum);
        }
        if (a.edge > 1 && a.bulk)
        {
            add_background(a, s, q, NULL, r, sum);
        }
    }
}

/* The same of a particle with a dipole. */
template <class R>
static __device__ void add_dipole_sums(const OutputArgs&      a,
                                       const DipoleOutput<R>& d,
                                       int                    s,
                                       const Vec4<R>&         y,
                                       const Vec4<R>&         near,
                                       const Vec4<R>&         far,
                                       double*                sum)
{
    const double        q = static_cast<double>(y.w), one = a.near_unit, two = one * one;
    const dipole_vector mu = dipole_of(d, s);
    if (!has_source(q, mu)) /* near may not be finite then */
    {
        return;
    }
    const dipole_vector e_near = {static_cast<double>(near.x) * two, static_cast<double>(near.y) * two,
                                  static_cast<double>(near.z) * two};
    const dipole_vector e_far  = {static_cast<double>(far.x), static_cast<double>(far.y), static_cast<double>(far.z)};
    const dipole_vector e      = {e_near.x + e_far.x, e_near.y + e_far.y, e_near.z + e_far.z};
    const dipole_vector torque = dipole_cross(mu, e);
    sum[6] += q * static_cast<double>(near.w) * one;
    sum[7] += q * static_cast<double>(far.w);
    sum[c_nearDipoles] += dipole_dot(mu, e_near);
    sum[c_farDipoles] += dipole_dot(mu, e_far);
    sum[c_torques] += torque.x;
    sum[c_torques + 1] += torque.y;
    sum[c_torques + 2] += torque.z;
    if (a.out.virial == NULL)
    {
        return;
    }
    double g_near[6], g_far[6];
    for (int i = 0; i < 6; i++)
    {
        g_near[i] = static_cast<double>(d.near[s].t[i]) * (two * one);
        g_far[i]  = static_cast<double>(d.far[s].t[i]);
    }
    const double        r[3]   = {static_cast<double>(y.x), static_cast<double>(y.y), static_cast<double>(y.z)};
    const dipole_vector of_far = force_on(q, mu, e_far, g_far), of_near = force_on(q, mu, e_near, g_near);
    const double        f_far[3] = {of_far.x, of_far.y, of_far.z}, f_near[3] = {of_near.x, of_near.y, of_near.z};
    fmm_add_symmetric(1, r, f_far, sum);
    if (a.num_near_rows >= 0)
    {
        add_near_virial(a, s, y, f_near, sum);
    }
    if (a.edge > 1 && a.bulk)
    {
        const double m[3] = {mu.x, mu.y, mu.z};
        add_background(a, s, q, m, r, sum);
    }
}

/* Element i = xx yy zz xy xz yz of the strain derivative of the far energy before its trace is set, THEORY (21)-(23):
 * see far_virial of cpu/output.c. w: the five sums of the convolution. */
static __device__ double far_virial(const OutputArgs& a, int i, const double* y_force, const double* w)
{
    const double* m   = a.results->moments;
    const int     row = i < 3 ? i : i == 5, column = i < 3 ? i : i == 3 ? 1 : 2;
    double        strain = 0.5 * fmm_twice_traceless(w, i) / a.edge;
    if (a.tree_strain != NULL)
    {
        strain += a.tree_strain[i];
    }
    if (a.bulk)
    {
        strain += fmm_missing_strain(0.6 * a.background, *a.total_charge, m[row], m[column], m[3 + i]);
    }
    return 0.5 * (strain - y_force[i]);
}

/* Element (row, column) of a symmetric tensor of the plan's axes in the caller's; virial: its numbers, with `shift` on
 * the diagonal and far excluded pairs as write_sums has them. */
static __device__ double
turned_element(const double* axes, const double* virial, const double* far_pairs, double shift, int row, int column)
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            const int k = i == j ? i : i + j + 2;
            sum += axes[3 * i + row] * axes[3 * j + column] * (virial[k] + (i == j ? shift : 0) + far_pairs[k]);
        }
    }
    return sum;
}

/* THEORY (51): element (row, column) of the antisymmetric part of a virial, quarters of the sum of torques. */
static __device__ double turn_element(const OutputArgs& a, const double* torques, int row, int column)
{
    const int along = 3 - row - column, sign = (row + 1) % 3 == column ? 1 : -1;
    double    sum = a.slab ? 0 : torques[along];
    for (int i = 0; i < 3 && a.slab; i++)
    {
        sum += a.box->axes[3 * i + along] * torques[i];
    }
    return 0.25 * sign * sum;
}

/* Energies and virial in the caller's units from sums over particles, near tiles and frequencies. Each thread of a
 * block computes one element: straight code of one thread for all elements would take longer to fetch from memory than
 * the rest of the step. virial: 6 numbers in shared memory. */
template <bool DIPOLES>
static __device__ void
write_sums(const OutputArgs& a, const double* sum, const double* near_virial, const double* w, double* virial)
{
    const int     me        = static_cast<int>(threadIdx.x);
    const double* surface   = a.results->moments + 9;
    const double  d2        = surface[0] * surface[0] + surface[1] * surface[1] + surface[2] * surface[2];
    const double  e_surface = a.vacuum ? 0.5 * a.box->surface * d2 : 0;
    const double  near      = 0.5 * (DIPOLES ? sum[6] - sum[c_nearDipoles] : sum[6]);
    const double  far       = 0.5 * (DIPOLES ? sum[7] - sum[c_farDipoles] : sum[7]);
    /* energies times what they are of 1 / length */
    const double near_degree = DIPOLES ? near - sum[c_nearDipoles] : near;
    const double far_degree  = DIPOLES ? far - sum[c_farDipoles] : far;
    if (a.out.energy != NULL && me < 2)
    {
        a.out.energy[me] = a.f * (me == 0 ? near * a.box->inverse_u : (far + sum[8]) * a.box->inverse_u + e_surface);
    }
    if (a.out.virial == NULL)
    {
        return;
    }
    if (me < 6)
    {
        virial[me] = far_virial(a, me, sum, w) + near_virial[me];
    }
    __syncthreads();
    if (me < 9)
    {
        const int row = me / 3, column = me % 3;
        const int k = row == column ? row : row + column + 2;
        /* of near pairs without a force the trace is not that of their energy */
        const bool   summed     = a.limited || (DIPOLES && a.num_near_rows < 0);
        const double near_trace = summed ? near_virial[0] + near_virial[1] + near_virial[2] : -0.5 * near_degree;
        const double shift      = fmm_trace_shift(virial, near_trace - 0.5 * far_degree);
        double       v          = a.slab ? turned_element(a.box->axes, virial, sum + 9, shift, row, column)
                                         : virial[k] + (row == column ? shift : 0) + sum[9 + k];
        v += DIPOLES && row != column ? turn_element(a, sum + c_torques, row, column) : 0;
        v *= a.box->inverse_u;
        if (a.vacuum)
        {
            /* dipoles are not strained */
            const double strained = DIPOLES ? surface[row] - surface[3 + row] : surface[row];
            v += 0.5 * (a.box->surface * strained * surface[column] - (row == column ? e_surface : 0));
        }
        a.out.virial[me] = a.f * v;
    }
}

/* In the caller's array, and where it is kept; phi: without the surface, unit 1/u. */
template <class X>
static __device__ void
write_potential(const OutputArgs& a, const X* x, int64_t i, double phi, const double* surface_field)
{
    const int slot = a.slot != NULL ? a.slot[i] : -1;
    if (a.out.potential != NULL || slot >= 0)
    {
        phi *= a.box->inverse_u;
        for (int d = 0; d < 3; d++)
        {
            phi -= surface_field[d] != 0 ? surface_field[d] * static_cast<double>(x[3 * i + d]) : 0;
        }
        phi *= a.f;
    }
    if (a.out.potential != NULL)
    {
        static_cast<X*>(a.out.potential)[i] = static_cast<X>(phi);
    }
    if (slot >= 0)
    {
        a.kept[slot] = phi;
    }
}

template <class R, class X>
static __device__ void write_particle(
    const OutputArgs& a, const X* x, int64_t i, double q, const double* e, double phi, const double* surface_field)
{
    for (int d = 0; d < 3; d++)
    {
        if (a.out.force != NULL)
        {
            X* force = static_cast<X*>(a.out.force) + 3 * i + d;
            *force   = static_cast<X>(a.f * q * e[d] + (a.out.add_forces ? static_cast<double>(*force) : 0));
        }
        if (a.out.field != NULL)
        {
            static_cast<X*>(a.out.field)[3 * i + d] = static_cast<X>(a.f * e[d]);
        }
    }
    write_potential(a, x, i, phi, surface_field);
}

/* The last block adds up the sums of all blocks. */
template <int ROWS>
static __device__ void finish(const OutputArgs& a)
{
    __shared__ double total[2][ROWS], virial[6];
    const double      sum = column_sum<c_threads>(a.partial, static_cast<int>(gridDim.x), ROWS);
    const double      w   = a.out.virial != NULL ? column_sum<c_threads>(a.far_virial, a.num_far_rows, 5) : 0;
    if (threadIdx.x < ROWS)
    {
        total[0][threadIdx.x] = sum;
        total[1][threadIdx.x] = w;
    }
    __syncthreads();
    write_sums<ROWS == static_cast<int>(c_dipolesRows)>(a, total[0], total[0] + 15, total[1], virial);
    if (threadIdx.x == 0)
    {
        a.results->output_done = 0;
    }
}

/* What the sums say of particles that have left their cells, by the lanes of one warp of a step; they begin anew. */
static __device__ void finish_left(const OutputArgs& a, int lane)
{
    static_assert(static_cast<int>(c_leftSums) == 32, "one for each lane");
    StepResults* r     = a.results;
    LeftSums     sums  = r->left_sums[lane];
    r->left_sums[lane] = LeftSums{0, 0, 0, 0};
    for (int step = 16; step > 0; step /= 2)
    {
        sums.now += __shfl_down_sync(0xffffffffu, sums.now, step);
        sums.then += __shfl_down_sync(0xffffffffu, sums.then, step);
        sums.charge2 += __shfl_down_sync(0xffffffffu, sums.charge2, step);
        const unsigned long long other = __shfl_down_sync(0xffffffffu, sums.farthest, step);
        sums.farthest                  = other > sums.farthest ? other : sums.farthest;
    }
    if (lane > 0)
    {
        return;
    }
    const double   largest = static_cast<double>(__uint_as_float(static_cast<unsigned>(sums.farthest >> 32)));
    const fmm_left left    = {sums.now, sums.then, sums.charge2, fmm_left_outside(largest)};
    r->left                = left;
    r->farthest            = static_cast<int>(~static_cast<unsigned>(sums.farthest));
    r->has_left            = a.fails && fmm_has_left(&a.limits, &left);
    if (a.out.outside != NULL)
    {
        *a.out.outside = left.outside;
    }
}

/* Also where nobody looks, a particle that has no expansion any more has left its cell. second: an error that is there
 * stays. */
__global__ void write_status(const StepResults* r, bool second, int* status)
{
    const bool lost = r->bad_positions != c_none && r->left.outside == INFINITY;
    if (second && *status != GMXFMM_OK)
    {
        return;
    }
    *status = r->bad_charge != c_none                                          ? GMXFMM_ERROR_CHARGE
              : r->unplaced != c_none || (r->bad_positions != c_none && !lost) ? GMXFMM_ERROR_POSITION
              : lost || r->has_left                                            ? GMXFMM_ERROR_LEFT
              : r->not_finite != c_none                                        ? GMXFMM_ERROR_COINCIDENT
                                                                               : GMXFMM_OK;
}

template <class R>
static __device__ inline bool is_finite(const Vec4<R>& v)
{
    return fabs(v.x) + fabs(v.y) + fabs(v.z) + fabs(v.w) < R(INFINITY);
}

template <class R, class X>
__global__ void __launch_bounds__(c_threads) write_output(OutputArgs              a,
                                                          const __grid_constant__ P2pArgs<R> pairs,
                                                          const X*                           x,
                                                          const Vec4<R>*                     xq,
                                                          const Vec4<R>*                     near,
                                                          const Vec4<R>*                     far)
{
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x >= c_threads - 32) /* rarely those that have particles */
    {
        finish_left(a, static_cast<int>(threadIdx.x % 32));
    }
    double       surface_field[3] = {0, 0, 0};
    const double inverse_u        = a.box->inverse_u;
    const double one = a.near_unit, two = one * one; /* units of 1/r and 1/r^2 */
    const bool   far_pairs = a.far_pairs != NULL && a.assigned->num_far > 0;
    for (int d = 0; d < 3 && a.vacuum; d++)
    {
        surface_field[d] = -a.box->surface * a.results->moments[9 + d];
    }
    /* threads in the caller's order: near and far are still in the L2 cache, while scattered writes would be slow */
#pragma unroll 1
    for (int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x); i < a.n;
         i += static_cast<int>(gridDim.x) * c_threads)
    {
        const int     s  = a.position[i];
        const Vec4<R> ef = far[s];
        Vec4<R>       en = near[s];
        if (!is_finite(en) && pairs.self && xq[s].w == 0)
        {
            en = sums_elsewhere(pairs, s, a.cell_of[s]);
        }
        double e[3] = {static_cast<double>(en.x) * two + static_cast<double>(ef.x),
                       static_cast<double>(en.y) * two + static_cast<double>(ef.y),
                       static_cast<double>(en.z) * two + static_cast<double>(ef.z)};
        double phi  = static_cast<double>(en.w) * one + static_cast<double>(ef.w);
        if (far_pairs)
        {
            take_far_pairs<false>(a, xq, s, &phi, e, NULL);
        }
        for (int d = 0; d < 3; d++)
        {
            e[d] = e[d] * (inverse_u * inverse_u) + surface_field[d];
        }
        if (a.slab)
        {
            const double* axes   = a.box->axes;
            const double  own[3] = {e[0], e[1], e[2]};
            for (int d = 0; d < 3; d++)
            {
                e[d] = own[0] * axes[d] + own[1] * axes[3 + d] + own[2] * axes[6 + d];
            }
        }
        if (!(fabs(e[0]) + fabs(e[1]) + fabs(e[2]) + fabs(phi) < INFINITY))
        {
            atomicMin(&a.results->not_finite, i);
            if (isnan(xq[s].x))
            {
                a.results->bad_positions = 1;
            }
        }
        const double q = a.out.force != NULL ? static_cast<double>(static_cast<R>(a.charge[i])) : 0;
        write_particle<R>(a, x, i, q, e, phi, surface_field);
    }
}

/* Vector of the plan's axes in the caller's. */
static __device__ inline dipole_vector turned(const double* axes, const dipole_vector& v)
{
    return {v.x * axes[0] + v.y * axes[3] + v.z * axes[6], v.x * axes[1] + v.y * axes[4] + v.z * axes[7],
            v.x * axes[2] + v.y * axes[5] + v.z * axes[8]};
}

template <class X>
static __device__ inline void write_vector(void* array, int64_t i, double f, const dipole_vector& v, int added = 0)
{
    if (array != NULL)
    {
        X* to = static_cast<X*>(array) + 3 * i;
        to[0] = static_cast<X>(f * v.x + (added ? static_cast<double>(to[0]) : 0));
        to[1] = static_cast<X>(f * v.y + (added ? static_cast<double>(to[1]) : 0));
        to[2] = static_cast<X>(f * v.z + (added ? static_cast<double>(to[2]) : 0));
    }
}

/* Results of one particle or target with dipoles, in the plan's axes: phi and g without the surface in units of u, e
 * and the rest in the caller's. */
template <class X>
static __device__ void write_dipole(const OutputArgs&    a,
                                    const X*             x,
                                    int64_t              i,
                                    double               q,
                                    const dipole_vector& mu,
                                    double               phi,
                                    const dipole_vector& e,
                                    const double*        g,
                                    const double*        surface_field)
{
    const double        one = a.box->inverse_u, two = one * one;
    const dipole_vector none = {0, 0, 0}, of_g = force_on(0, mu, none, g);
    const dipole_vector force  = {q * e.x + of_g.x * two, q * e.y + of_g.y * two, q * e.z + of_g.z * two};
    const dipole_vector torque = dipole_cross(mu, e);
    const double*       axes   = a.box->axes;
    write_vector<X>(a.out.force, i, a.f, a.slab ? turned(axes, force) : force, a.out.add_forces);
    write_vector<X>(a.out.field, i, a.f, a.slab ? turned(axes, e) : e);
    write_vector<X>(a.out.torque, i, a.f / one, a.slab ? turned(axes, torque) : torque);
    write_potential(a, x, i, phi, surface_field);
    for (int k = 0; k < 6 && a.out.field_gradient != NULL; k++)
    {
        const double none_of[6] = {0};
        const int    row = fmm_tensor_row(k), column = fmm_tensor_column(k);
        const double value = a.slab ? turned_element(axes, g, none_of, 0, row, column) : g[k];
        static_cast<X*>(a.out.field_gradient)[6 * i + k] = static_cast<X>(a.f * (two * one) * value);
    }
}

template <class R>
static __device__ inline bool is_finite(const Symmetric<R>& g)
{
    return fabs(g.t[0]) + fabs(g.t[1]) + fabs(g.t[2]) + fabs(g.t[3]) + fabs(g.t[4]) + fabs(g.t[5]) < R(INFINITY);
}

/* As write_output, with dipoles. */
template <class R, class X>
__global__ void __launch_bounds__(c_threads) write_dipoles(OutputArgs              a,
                                                           const __grid_constant__ P2pArgs<R> pairs,
                                                           const __grid_constant__ DipoleOutput<R> d,
                                                           const X*                                x,
                                                           const Vec4<R>*                          xq,
                                                           const Vec4<R>*                          near,
                                                           const Vec4<R>*                          far)
{
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x >= c_threads - 32) /* rarely those that have particles */
    {
        finish_left(a, static_cast<int>(threadIdx.x % 32));
    }
    double       surface_field[3] = {0, 0, 0};
    const double inverse_u        = a.box->inverse_u;
    const double one = a.near_unit, two = one * one; /* units of 1/r and 1/r^2 */
    const bool   far_pairs = a.far_pairs != NULL && a.assigned->num_far > 0;
    for (int k = 0; k < 3 && a.vacuum; k++)
    {
        surface_field[k] = -a.box->surface * a.results->moments[9 + k];
    }
#pragma unroll 1
    for (int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x); i < a.n;
         i += static_cast<int>(gridDim.x) * c_threads)
    {
        const int           s  = a.position[i];
        const Vec4<R>       ef = far[s];
        const double        q  = static_cast<double>(xq[s].w);
        const dipole_vector mu = dipole_of(d, s);
        Vec4<R>             en = near[s];
        Symmetric<R>        gn = {{0, 0, 0, 0, 0, 0}}, gf = gn;
        if (d.gradient)
        {
            gn = d.near[s];
            gf = d.far[s];
        }
        if (!(is_finite(en) && is_finite(gn)) && pairs.self && !has_source(q, mu))
        {
            en = dipole_sums_elsewhere(pairs, d.pairs, s, a.cell_of[s], &gn);
        }
        dipole_vector e   = {static_cast<double>(en.x) * two + static_cast<double>(ef.x),
                             static_cast<double>(en.y) * two + static_cast<double>(ef.y),
                             static_cast<double>(en.z) * two + static_cast<double>(ef.z)};
        double        phi = static_cast<double>(en.w) * one + static_cast<double>(ef.w), g[6], size = 0;
        for (int k = 0; k < 6; k++)
        {
            g[k] = static_cast<double>(gn.t[k]) * (two * one) + static_cast<double>(gf.t[k]);
        }
        if (far_pairs)
        {
            take_far_dipoles<false>(a, d, xq, s, &phi, &e, g, NULL);
        }
        e = {e.x * (inverse_u * inverse_u) + surface_field[0], e.y * (inverse_u * inverse_u) + surface_field[1],
             e.z * (inverse_u * inverse_u) + surface_field[2]};
        for (int k = 0; k < 6; k++)
        {
            size += fabs(g[k]);
        }
        if (!(fabs(e.x) + fabs(e.y) + fabs(e.z) + fabs(phi) + size < INFINITY))
        {
            atomicMin(&a.results->not_finite, i);
            if (isnan(xq[s].x))
            {
                a.results->bad_positions = 1;
            }
        }
        write_dipole(a, x, i, q, mu, phi, e, g, surface_field);
    }
}

/* Adds rows of the near virial to the sums of a thread. */
template <class R>
static __device__ void add_near_rows(const OutputArgs& a, const R* near_virial, int first, int step, double* sum)
{
    const int rows = a.out.virial == NULL ? 0 : a.num_near_rows >= 0 ? a.num_near_rows : a.assigned->num_tiles;
#pragma unroll 1
    for (int row = first; row < rows; row += step)
    {
        for (int k = 0; k < 6; k++)
        {
            sum[15 + k] += static_cast<double>(near_virial[6 * static_cast<size_t>(row) + k]) * a.near_unit;
        }
    }
}

/* Threads in sorted order, which is that of all arrays read here. */
template <class R>
__global__ void __launch_bounds__(c_threads) sum_dipoles(OutputArgs              a,
                                                         const __grid_constant__ DipoleOutput<R> d,
                                                         const Vec4<R>*                          xq,
                                                         const Vec4<R>*                          near,
                                                         const Vec4<R>*                          far,
                                                         const R*                                near_virial)
{
    double     sum[c_dipolesRows] = {0};
    const bool far_pairs          = a.far_pairs != NULL && a.assigned->num_far > 0;
    const int  first = static_cast<int>(blockIdx.x * c_threads + threadIdx.x), step = gridDim.x * c_threads;
#pragma unroll 1
    for (int s = first; s < a.n; s += step)
    {
        add_dipole_sums(a, d, s, xq[s], near[s], far[s], sum);
        if (far_pairs)
        {
            take_far_dipoles<true>(a, d, xq, s, NULL, NULL, NULL, sum);
        }
    }
    add_near_rows(a, near_virial, first, step, sum);
    block_sums<c_threads, 8>(sum, a.partial + static_cast<size_t>(blockIdx.x) * c_dipolesRows);
    if (is_last_block(&a.results->output_done))
    {
        finish<c_dipolesRows>(a);
    }
}

template <class R>
__global__ void __launch_bounds__(c_threads)
    sum_output(OutputArgs a, const Vec4<R>* xq, const Vec4<R>* near, const Vec4<R>* far, const R* near_virial)
{
    double     sum[c_numRows] = {0};
    const bool far_pairs      = a.far_pairs != NULL && a.assigned->num_far > 0;
    const int  first = static_cast<int>(blockIdx.x * c_threads + threadIdx.x), step = gridDim.x * c_threads;
#pragma unroll 1
    for (int s = first; s < a.n; s += step)
    {
        add_sums(a, s, xq[s], near[s], far[s], sum);
        if (far_pairs)
        {
            take_far_pairs<true>(a, xq, s, NULL, NULL, sum);
        }
    }
    add_near_rows(a, near_virial, first, step, sum);
    block_sums<c_threads, 8>(sum, a.partial + static_cast<size_t>(blockIdx.x) * c_numRows);
    if (is_last_block(&a.results->output_done))
    {
        finish<c_numRows>(a);
    }
}

static OutputArgs make_args(const gmxfmm_plan* plan, const gmxfmm_device_output* output)
{
    const fmm_device*  d       = plan->device;
    const ParticleSet* targets = targets_of(d);
    const Expansions   far     = d->far.path->expansions(plan);
    OutputArgs         a;
    a.g             = make_geometry(plan);
    a.box           = d->domain.box.as<BoxValues>();
    a.n             = targets->n;
    a.bulk          = fmm_is_bulk(plan);
    a.slab          = fmm_is_slab(plan->domain.periodic);
    a.vacuum        = plan->options.boundary == GMXFMM_VACUUM;
    a.num_far_rows  = fmm_has_lattice_sums(plan) ? fmm_cuda_virial_blocks(plan) : 0;
    a.num_near_rows = plan->domain.tree != NULL || fmm_has_given(plan) ? -1 : fmm_cuda_near_virial_rows(plan, 0);
    a.edge          = far.leaves.edge;
    a.position      = targets->position.as<int>();
    a.cell_of       = targets->cell_of.as<int>();
    a.charge        = d->charges.value.as<double>();
    a.slot          = output->charge_gradient != NULL ? d->derivatives.slot.as<int>() : NULL;
    a.kept          = d->derivatives.phi.as<double>();
    a.far_start     = d->near.far_start.as<int>();
    a.far_pairs     = plan->particles.excl_start != NULL ? d->near.far_pairs.as<FarPair>() : NULL;
    a.given         = fmm_is_adaptive(plan) ? targets->given.memory : NULL;
    a.partial       = d->output.partial.as<double>() + c_numSums * c_sumBlocks;
    a.far_virial    = d->far.cells.virial.as<double>();
    a.tree_strain   = far.strain;
    a.results       = d->output.results.as<StepResults>();
    a.assigned      = d->particles.assign_results.as<AssignResults>();
    a.near_unit     = fmm_has_given(plan) ? plan->domain.cells.u * fmm_given_scale(plan) : 1;
    a.f             = plan->options.prefactor;
    a.limited       = plan->options.min_distance > 0;
    a.total_charge  = d->charges.results.as<ChargeResults>()->total;
    a.background    = 4 * FMM_PI / 3 / plan->domain.cells.box_volume;
    a.limits        = fmm_left_limits_of(plan);
    a.fails         = plan->options.check == GMXFMM_CHECK_ERROR;
    a.out           = *output;
    return a;
}

/* gradient: whether the step computed it. */
template <class R>
static DipoleOutput<R> dipole_output(const gmxfmm_plan* plan, const gmxfmm_device_output* output)
{
    const DeviceOutput& o = plan->device->output;
    DipoleOutput<R>     d;
    d.pairs    = fmm_cuda_dipole_args<R>(plan);
    d.near     = o.near_gradient.as<Symmetric<R>>();
    d.far      = o.far_gradient.as<Symmetric<R>>();
    d.gradient = fmm_cuda_wants_gradient(plan, output);
    return d;
}

template <class R, class X>
static void launch(const gmxfmm_plan* plan, const OutputArgs& a, const void* x, cudaStream_t stream)
{
    const fmm_device* d      = plan->device;
    const int         blocks = std::max(1, blocks_for(a.n, c_threads));
    const X*          from   = static_cast<const X*>(x);
    const Vec4<R>*    xq     = targets_of(d)->xq.as<Vec4<R>>();
    const Vec4<R>*    near   = d->output.near.as<Vec4<R>>();
    const Vec4<R>*    far    = d->output.far.as<Vec4<R>>();
    const P2pArgs<R>  pairs  = fmm_cuda_p2p_args<R>(plan, d);
    if (fmm_has_dipoles(plan))
    {
        const DipoleOutput<R> dipoles = dipole_output<R>(plan, &a.out);
        write_dipoles<R, X><<<blocks, c_threads, 0, stream>>>(a, pairs, dipoles, from, xq, near, far);
        return;
    }
    write_output<R, X><<<blocks, c_threads, 0, stream>>>(a, pairs, from, xq, near, far);
}

gmxfmm_status fmm_cuda_output(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, cudaStream_t stream)
{
    const fmm_device* d = plan->device;
    const OutputArgs  a = make_args(plan, output);
    if (targets_of(d) != &d->particles.sources)
    {
        x = d->particles.target_x.memory;
    }
    if (plan->options.array_type == GMXFMM_DOUBLE)
    {
        is_double(plan) ? launch<double, double>(plan, a, x, stream) : launch<float, double>(plan, a, x, stream);
    }
    else
    {
        is_double(plan) ? launch<double, float>(plan, a, x, stream) : launch<float, float>(plan, a, x, stream);
    }
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

template <class R>
static void launch_sums(const gmxfmm_plan* plan, const OutputArgs& a, cudaStream_t stream)
{
    const fmm_device* d      = plan->device;
    const int         blocks = std::max(1, std::min<int>(blocks_for(a.n, c_threads), c_sumBlocks));
    const Vec4<R>*    xq     = targets_of(d)->xq.as<Vec4<R>>();
    const Vec4<R>*    near   = d->output.near.as<Vec4<R>>();
    const Vec4<R>*    far    = d->output.far.as<Vec4<R>>();
    const R*          virial = d->near.virial.as<R>();
    if (fmm_has_dipoles(plan))
    {
        sum_dipoles<R><<<blocks, c_threads, 0, stream>>>(a, dipole_output<R>(plan, &a.out), xq, near, far, virial);
        return;
    }
    sum_output<R><<<blocks, c_threads, 0, stream>>>(a, xq, near, far, virial);
}

gmxfmm_status fmm_cuda_sums(gmxfmm_plan* plan, const gmxfmm_device_output* output, cudaStream_t stream)
{
    const OutputArgs a = make_args(plan, output);
    is_double(plan) ? launch_sums<double>(plan, a, stream) : launch_sums<float>(plan, a, stream);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_status(gmxfmm_plan* plan, bool second, int* status, cudaStream_t stream)
{
    write_status<<<1, 1, 0, stream>>>(plan->device->output.results.as<StepResults>(), second, status);
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}
