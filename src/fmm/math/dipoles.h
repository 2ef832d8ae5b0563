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
#include "fmm/math/strain.h"

/* A source as its target sees it. */
typedef struct
{
    DIPOLE_T n[3], u[3], potential, e, g; /* potential: without w */
} dipole_source;

static inline FMM_HD DIPOLE_T dipole_dot(const DIPOLE_T* a, const DIPOLE_T* b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* r and mu: three components each. */
static inline FMM_HD dipole_source dipole_see(DIPOLE_T q, const DIPOLE_T* mu, const DIPOLE_T* r, DIPOLE_T w)
{
    dipole_source s;
    for (int d = 0; d < 3; d++)
    {
        s.n[d] = r[d] * w;
        s.u[d] = mu[d] * w;
    }
    const DIPOLE_T along = dipole_dot(s.u, s.n);
    s.potential          = q + along;
    s.e                  = q + along * (DIPOLE_R)3;
    s.g                  = q * (DIPOLE_R)3 + along * (DIPOLE_R)15;
    return s;
}

/* Component d of E / w^2. */
static inline FMM_HD DIPOLE_T dipole_field(const dipole_source* s, int d)
{
    return s->e * s->n[d] - s->u[d];
}

/* Element i of the gradient of E over w^3: xx, yy, zz, xy, xz, yz. */
static inline FMM_HD DIPOLE_T dipole_gradient(const dipole_source* s, int i)
{
    const int      a = fmm_tensor_row(i), b = fmm_tensor_column(i);
    const DIPOLE_T cross = s->u[a] * s->n[b] + s->n[a] * s->u[b];
    DIPOLE_T       value = cross * (DIPOLE_R)3 - s->g * (s->n[a] * s->n[b]);
    if (a == b)
    {
        value = value + s->e;
    }
    return value;
}

/* Force over w^2 on a target with charge q and dipole mu, v = mu w. */
static inline FMM_HD void dipole_force(const dipole_source* s, DIPOLE_T q, const DIPOLE_T* v, DIPOLE_T* force)
{
    const DIPOLE_T along = dipole_dot(v, s->n);
    const DIPOLE_T on_n  = q * s->e - s->g * along + dipole_dot(v, s->u) * (DIPOLE_R)3;
    const DIPOLE_T on_u  = along * (DIPOLE_R)3 - q;
    for (int d = 0; d < 3; d++)
    {
        force[d] = on_n * s->n[d] + on_u * s->u[d] + s->e * v[d];
    }
}

#endif
