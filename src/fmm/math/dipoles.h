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
    DIPOLE_T      potential, e, g; /* potential: without w */
} dipole_source;

static inline FMM_HD dipole_source dipole_see(DIPOLE_T q, dipole_vector mu, dipole_vector r, DIPOLE_T w)
{
    const dipole_vector n = dipole_times(r, w), u = dipole_times(mu, w);
    const DIPOLE_T      along = dipole_dot(u, n);
    const dipole_source s     = {n, u, q + along, q + along * (DIPOLE_R)3, q * (DIPOLE_R)3 + along * (DIPOLE_R)15};
    return s;
}

/* E / w^2. */
static inline FMM_HD dipole_vector dipole_field(const dipole_source* s)
{
    const dipole_vector field = {s->e * s->n.x - s->u.x, s->e * s->n.y - s->u.y, s->e * s->n.z - s->u.z};
    return field;
}

/* Adds w^3 times its gradient to sum[6]: xx, yy, zz, xy, xz, yz. With v = 3 u - g n / 2 it is e delta + v n + n v. */
static inline FMM_HD void dipole_add_gradient(const dipole_source* s, DIPOLE_T w3, DIPOLE_T* sum)
{
    const DIPOLE_T      half = s->g * (DIPOLE_R)0.5, three = w3 * (DIPOLE_R)3, e = s->e * w3;
    const dipole_vector n = s->n;
    const dipole_vector v = {s->u.x * three - n.x * half * w3, s->u.y * three - n.y * half * w3,
                             s->u.z * three - n.z * half * w3};
    sum[0]                = sum[0] + (v.x * n.x * (DIPOLE_R)2 + e);
    sum[1]                = sum[1] + (v.y * n.y * (DIPOLE_R)2 + e);
    sum[2]                = sum[2] + (v.z * n.z * (DIPOLE_R)2 + e);
    sum[3]                = sum[3] + (v.x * n.y + v.y * n.x);
    sum[4]                = sum[4] + (v.x * n.z + v.z * n.x);
    sum[5]                = sum[5] + (v.y * n.z + v.z * n.y);
}

/* Force over w^2 on a target with charge q and dipole mu, v = mu w. */
static inline FMM_HD dipole_vector dipole_force(const dipole_source* s, DIPOLE_T q, dipole_vector v)
{
    const DIPOLE_T      along = dipole_dot(v, s->n);
    const DIPOLE_T      on_n  = q * s->e - s->g * along + dipole_dot(v, s->u) * (DIPOLE_R)3;
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
