/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Force and potential of a pair of sites (lj.h), without branches, for any type LJ_T with + - * and <: a scalar, or a
 * vector of lanes. LJ_R is its scalar. A vector also needs
 *
 *   LJ_MASK           type of a comparison
 *   LJ_WHERE(m, x)    x where m is true, 0 elsewhere
 *   LJ_UNLESS(m, x)   x where m is false, 0 elsewhere
 *   LJ_AT_LEAST(x, s) the larger one of x and the scalar s
 *   LJ_RSQRT(x)       1 / sqrt(x), x > 0
 *
 * A kernel has kind and with_potential as constants.
 */
#ifndef FMM_LJ_FORCE_H
#define FMM_LJ_FORCE_H

#include "fmm/math/lj.h"

#ifndef LJ_MASK
#    define LJ_MASK int
#    define LJ_WHERE(mask, x) ((mask) ? (x) : (LJ_R)0)
#    define LJ_UNLESS(mask, x) ((mask) ? (LJ_R)0 : (x))
#    define LJ_AT_LEAST(x, least) ((x) < (least) ? (least) : (x))
#    define LJ_RSQRT(x) ((LJ_R)1 / (LJ_R)sqrt(x))
#endif

/*
 * Constants of lj.h in the kernel's precision. A pair has p6 = 6 C6 and p12 = 12 C12, so that the force of r^-6 is p6 /
 * r^7, and coefficients of the modifiers are divided by 6 and 12. [0], [1]: of r^-6 and r^-12.
 */
typedef struct
{
    LJ_R floor2; /* squares of distances: up to this one V is constant */
    LJ_R inner_cutoff2, outer_cutoff2;
    LJ_R inner_start, outer_start;
    LJ_R inner_a[2], inner_b[2], outer_a[2], outer_b[2];
    LJ_R near_shift[2], far_shift[2]; /* below the inner cut-off, and beyond it */
    LJ_R one_over_width;              /* of a switch, otherwise 0 */
} lj_constants;

static inline lj_constants lj_constants_of(const struct lj_pair* pair)
{
    const struct lj_range *o = &pair->outer, *i = &pair->inner;
    lj_constants           c;
    c.floor2 =
        (LJ_R)(lj_floor(pair) * lj_floor(pair) * (1 - 1e-6)); /* below the start of a switch whatever the rounding */
    c.inner_cutoff2  = (LJ_R)(i->cutoff * i->cutoff);
    c.outer_cutoff2  = (LJ_R)(o->cutoff * o->cutoff);
    c.inner_start    = (LJ_R)i->start;
    c.outer_start    = (LJ_R)o->start;
    c.one_over_width = (LJ_R)(o->cutoff > o->start ? 1 / (o->cutoff - o->start) : 0);
    for (int p = 0; p < 2; p++)
    {
        const double scale = 1. / (6 * (p + 1));
        c.inner_a[p]       = (LJ_R)(scale * i->a[p]);
        c.inner_b[p]       = (LJ_R)(scale * i->b[p]);
        c.outer_a[p]       = (LJ_R)(scale * o->a[p]);
        c.outer_b[p]       = (LJ_R)(scale * o->b[p]);
        c.near_shift[p]    = (LJ_R)(scale * (o->shift[p] - i->shift[p]));
        c.far_shift[p]     = (LJ_R)(scale * o->shift[p]);
    }
    return c;
}

typedef struct
{
    LJ_T force; /* over r: along the vector from the other site */
    LJ_T potential;
} lj_values;

/* Of r^-12 and r^-6 together: p12 k[1] - p6 k[0]. */
static inline FMM_HD LJ_T lj_sum(LJ_T p6, LJ_T p12, const LJ_R* k)
{
    return p12 * k[1] - p6 * k[0];
}

/* The potential of a switch at t beyond its start, over t^3. */
static inline FMM_HD LJ_T lj_integral(LJ_T p6, LJ_T p12, const LJ_R* a, const LJ_R* b, LJ_T t)
{
    const LJ_R third = (LJ_R)(1. / 3), fourth = (LJ_R)0.25;
    return p12 * (t * (fourth * b[1]) + third * a[1]) - p6 * (t * (fourth * b[0]) + third * a[0]);
}

/* V and its force at a distance with the square r2, which may be 0. Both are 0 at the outer cut-off and beyond it, and
 * at any distance if p6 and p12 are 0. Without with_potential the potential is not set. */
static inline FMM_HD lj_values
lj_force(const lj_constants* c, enum lj_kind kind, int with_potential, LJ_T r2, LJ_T p6, LJ_T p12)
{
    const int     has_inner = kind < LJ_SHIFTED_ALONE;
    const LJ_MASK within = r2 < c->outer_cutoff2, close = r2 < c->inner_cutoff2;
    const LJ_T    d2 = LJ_AT_LEAST(r2, c->floor2);
    const LJ_T    w = LJ_RSQRT(d2), w2 = w * w, w6 = w2 * w2 * w2;
    const LJ_T    ti = LJ_AT_LEAST(d2 * w - c->inner_start, (LJ_R)0), ti2 = LJ_WHERE(close, ti * ti);
    const LJ_T    t = LJ_AT_LEAST(d2 * w - c->outer_start, (LJ_R)0), t2 = t * t;
    const LJ_T    plain     = (p12 * (w6 * (LJ_R)(1. / 12)) - p6 * (LJ_R)(1. / 6)) * w6;
    LJ_T          potential = plain + lj_sum(p6, p12, c->far_shift);
    /* forces of r^-6 and r^-12 */
    LJ_T f6 = w6 * (has_inner ? LJ_UNLESS(close, w) : w), f12 = f6 * w6;
    if (has_inner)
    {
        f6        = f6 - ti2 * (ti * c->inner_b[0] + c->inner_a[0]);
        f12       = f12 - ti2 * (ti * c->inner_b[1] + c->inner_a[1]);
        potential = LJ_UNLESS(close, potential);
    }
    if (kind == LJ_FORCE_SWITCH || kind == LJ_FORCE_SWITCH_ALONE)
    {
        f6        = f6 + t2 * (t * c->outer_b[0] + c->outer_a[0]);
        f12       = f12 + t2 * (t * c->outer_b[1] + c->outer_a[1]);
        potential = potential - t2 * t * lj_integral(p6, p12, c->outer_a, c->outer_b, t);
    }
    LJ_T force = p12 * f12 - p6 * f6;
    if (kind == LJ_POTENTIAL_SWITCH || kind == LJ_POTENTIAL_SWITCH_ALONE)
    {
        const LJ_T x  = t * c->one_over_width;
        const LJ_T x2 = x * x, q = x2 * x * ((x * (LJ_R)6 - (LJ_R)15) * x + (LJ_R)10);
        const LJ_T dq = x2 * ((x - (LJ_R)2) * x + (LJ_R)1) * (LJ_R)30 * c->one_over_width;
        force         = force - (p12 * w6 - p6) * w6 * w * q + plain * dq;
        potential     = potential - plain * q;
    }
    lj_values values;
    values.force     = LJ_WHERE(within, force * w);
    values.potential = values.force; /* of no meaning */
    if (with_potential && has_inner)
    {
        potential = potential + LJ_WHERE(close, lj_sum(p6, p12, c->near_shift)) +
                    ti2 * ti * lj_integral(p6, p12, c->inner_a, c->inner_b, ti);
    }
    if (with_potential)
    {
        values.potential = LJ_WHERE(within, potential);
    }
    return values;
}

#endif
