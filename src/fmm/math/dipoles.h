/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pairs of point charges and dipoles (Stone 2013, chapter 3), THEORY (49): a source with charge q and dipole mu, a
 * target at r from it. With w = 1/|r|, n = r w, u = mu w:
 *
 *   phi = w (q + u.n),  E = w^2 (e n - u),  d E_b / d x_a = w^3 [e delta_ab - g n_a n_b + 3 (u_a n_b + n_a u_b)],
 *   e = q + 3 u.n,  g = 3 q + 15 u.n.
 *
 * No power above w^3 appears: in single precision those of long distances are no numbers. All are for any type DIPOLE_T
 * with + - * (scalar, or a vector of lanes); DIPOLE_R is its scalar.
 */
#ifndef FMM_DIPOLES_H
#define FMM_DIPOLES_H

#include "fmm/math/host_device.h"

/* Written out: compilers keep arrays that loops go through in memory. */
typedef struct
{
    DIPOLE_T x, y, z;
} dipole_vector;

static inline FMM_HD DIPOLE_T dipole_dot(dipole_vector a, dipole_vector b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline FMM_HD dipole_vector dipole_times(dipole_vector a, DIPOLE_T b)
{
    const dipole_vector product = {a.x * b, a.y * b, a.z * b};
    return product;
}

/* A source as its target sees it. */
typedef struct
{
    dipole_vector n, u;
    DIPOLE_T      potential, e, k; /* potential: without w; k: g / 6 */
} dipole_source;

static inline FMM_HD dipole_source dipole_see(DIPOLE_T q, dipole_vector mu, dipole_vector r, DIPOLE_T w)
{
    const dipole_vector n = dipole_times(r, w), u = dipole_times(mu, w);
    const DIPOLE_T      along = dipole_dot(u, n);
    const dipole_source s     = {n, u, q + along, q + along * (DIPOLE_R)3, q * (DIPOLE_R)0.5 + along * (DIPOLE_R)2.5};
    return s;
}

/* E / w^2. */
static inline FMM_HD dipole_vector dipole_field(const dipole_source* s)
{
    const dipole_vector field = {s->e * s->n.x - s->u.x, s->e * s->n.y - s->u.y, s->e * s->n.z - s->u.z};
    return field;
}

/* Adds w^3 times its gradient to sum[6], xx, yy, zz, xy, xz, yz: with v = u - k n it is w^3 [e delta + 3 (v n + n v)].
 * To the first three half of that is added, without e, so that each product has an addition beside it. */
static inline FMM_HD void dipole_add_gradient(const dipole_source* s, DIPOLE_T w3, DIPOLE_T* sum)
{
    const dipole_vector n = s->n, m = dipole_times(n, w3 * (DIPOLE_R)3);
    const dipole_vector v = {s->u.x - s->k * n.x, s->u.y - s->k * n.y, s->u.z - s->k * n.z};
    sum[0]                = sum[0] + v.x * m.x;
    sum[1]                = sum[1] + v.y * m.y;
    sum[2]                = sum[2] + v.z * m.z;
    sum[3]                = (sum[3] + v.x * m.y) + v.y * m.x;
    sum[4]                = (sum[4] + v.x * m.z) + v.z * m.x;
    sum[5]                = (sum[5] + v.y * m.z) + v.z * m.y;
}

/* Makes the gradient of these sums over sources. e is in none of them: the trace is zero. */
static inline FMM_HD void dipole_end_gradient(DIPOLE_R* sum)
{
    const DIPOLE_R third = (sum[0] + sum[1] + sum[2]) * (DIPOLE_R)(2.0 / 3.0);
    for (int i = 0; i < 3; i++)
    {
        sum[i] = sum[i] * 2 - third;
    }
}

/* Force over w^2 on a target with charge q and dipole mu, v = mu w. */
static inline FMM_HD dipole_vector dipole_force(const dipole_source* s, DIPOLE_T q, dipole_vector v)
{
    const DIPOLE_T      along = dipole_dot(v, s->n);
    const DIPOLE_T      on_n  = q * s->e - s->k * along * (DIPOLE_R)6 + dipole_dot(v, s->u) * (DIPOLE_R)3;
    const DIPOLE_T      on_u  = along * (DIPOLE_R)3 - q;
    const dipole_vector force = {on_n * s->n.x + on_u * s->u.x + s->e * v.x, on_n * s->n.y + on_u * s->u.y + s->e * v.y,
                                 on_n * s->n.z + on_u * s->u.z + s->e * v.z};
    return force;
}

/* Adds w times the symmetric part of n (x) force to sum[6]. */
static inline FMM_HD void dipole_add_lever(const dipole_source* s, dipole_vector force, DIPOLE_T w, DIPOLE_T* sum)
{
    const dipole_vector f = dipole_times(force, w), n = s->n;
    sum[0] = sum[0] + n.x * f.x;
    sum[1] = sum[1] + n.y * f.y;
    sum[2] = sum[2] + n.z * f.z;
    sum[3] = sum[3] + (n.x * f.y + n.y * f.x) * (DIPOLE_R)0.5;
    sum[4] = sum[4] + (n.x * f.z + n.z * f.x) * (DIPOLE_R)0.5;
    sum[5] = sum[5] + (n.y * f.z + n.z * f.y) * (DIPOLE_R)0.5;
}

#endif
