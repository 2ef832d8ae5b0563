/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Constants of the potential of a pair of sites: that of the outer cut-off less that of the inner one (gmxfmm_sites.h),
 * or the outer one alone. lj_force.h evaluates it.
 *
 * The plain parts of both cancel where both are computed, so that nothing is lost at small distances:
 *
 *   r < inner.cutoff:   the outer modifier less the inner one
 *   beyond:             plain with the outer modifier; the inner potential is zero
 *
 * A force switch adds t^2 (a + b t) to the force p / r^(p+1) of r^-p, and -t^3 (a / 3 + b t / 4) + shift to the
 * potential, t = r - start > 0 (GROMACS reference manual, "Modified non-bonded interactions"). A potential switch
 * multiplies the potential by 1 - 10 x^3 + 15 x^4 - 6 x^5, x = t / (cutoff - start).
 */
#ifndef FMM_LJ_H
#define FMM_LJ_H

#include <math.h>

#include "fmm/math/host_device.h"

/* What kernels are made for: the outer range, without an inner one (alone) or with it. A potential that is cut has a
 * shift of zero. */
enum lj_kind
{
    LJ_SHIFTED,
    LJ_FORCE_SWITCH,
    LJ_POTENTIAL_SWITCH,
    LJ_SHIFTED_ALONE,
    LJ_FORCE_SWITCH_ALONE,
    LJ_POTENTIAL_SWITCH_ALONE
};

/* Of r^-6 and r^-12. */
struct lj_range
{
    double start, cutoff;
    double a[2], b[2], shift[2]; /* a, b: 0 without a force switch */
};

struct lj_pair
{
    struct lj_range outer, inner; /* inner: with a force switch; zero for a kind that is alone */
    enum lj_kind    kind;
};

/* Plain up to the cut-off. */
static inline struct lj_range lj_cut(double cutoff)
{
    const struct lj_range range = {cutoff, cutoff, {0, 0}, {0, 0}, {0, 0}};
    return range;
}

/* Shifted to 0 at the cut-off. */
static inline struct lj_range lj_shifted(double cutoff)
{
    struct lj_range range = lj_cut(cutoff);
    range.shift[0]        = -pow(cutoff, -6);
    range.shift[1]        = -pow(cutoff, -12);
    return range;
}

static inline struct lj_range lj_force_switch(double start, double cutoff)
{
    const double    d     = cutoff - start;
    struct lj_range range = lj_shifted(cutoff);
    range.start           = start;
    for (int i = 0; i < 2; i++)
    {
        const double p    = 6 * (i + 1);
        const double part = p / (pow(cutoff, p + 2) * d * d);
        range.a[i]        = -part * ((p + 4) * cutoff - (p + 1) * start);
        range.b[i]        = part * ((p + 3) * cutoff - (p + 1) * start) / d;
        range.shift[i] += d * d * d * (range.a[i] / 3 + range.b[i] * d / 4);
    }
    return range;
}

static inline struct lj_range lj_potential_switch(double start, double cutoff)
{
    struct lj_range range = lj_cut(cutoff);
    range.start           = start;
    return range;
}

/* The distance up to which V is constant. With an inner range the force is zero there. Without one no pair of
 * atoms comes so close, and powers of it are finite. */
static inline double lj_floor(const struct lj_pair* pair)
{
    return pair->kind >= LJ_SHIFTED_ALONE ? 0.01 * pair->outer.cutoff : fmin(pair->outer.start, pair->inner.start);
}

#endif
