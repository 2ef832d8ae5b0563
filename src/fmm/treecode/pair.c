/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel for one pair of particles, in double precision, and the pair that is not finite. */
#include "fmm/treecode/pair.h"

#include <math.h>
#include <string.h>

typedef double real;
typedef double number;

static inline double kernel_rsqrt(double x)
{
    return 1 / sqrt(x);
}

static inline double kernel_exp(double x)
{
    return exp(x);
}

#define TREECODE_FUNCTION static inline
#include "fmm/treecode/kernels.h"

int treecode_pair(const treecode* t, double r2, double* g, double* slope)
{
    kernel_parameters k;
    memcpy(k.p, t->parameter, sizeof(k.p));
    kernel_evaluate(t->options.kernel, r2, k, g, slope);
    return isfinite(*g) && isfinite(*slope);
}

/* The charge next to a target, itself excluded, and the square of its distance; -1: there is none. */
static int64_t nearest_charge(const treecode* t, int64_t target, double* least)
{
    const treecode_clusters* targets = treecode_targets(t);
    int64_t                  nearest = -1;
    *least                           = INFINITY;
    for (int64_t s = 0; s < t->n; s++)
    {
        double square = 0;
        for (int d = 0; d < 3; d++)
        {
            square += pow(targets->x[d][target] - t->sources.x[d][s], 2);
        }
        if (t->sorted_q[s] != 0 && square < *least && (t->separate || s != target))
        {
            *least  = square;
            nearest = s;
        }
    }
    return nearest;
}

gmxfmm_status treecode_coincident(treecode* t, int64_t target)
{
    double square, g, slope;
    t->bad_target         = target;
    const int     known   = target >= 0 && t->sorted_q != NULL && (t->separate || t->sorted_q[target] != 0);
    const int64_t nearest = known ? nearest_charge(t, target, &square) : -1;
    if (nearest < 0 || treecode_pair(t, square, &g, &slope))
    {
        return treecode_fail(t, GMXFMM_ERROR_COINCIDENT, "%s are at one place, or so near that 1/r is not finite%s",
                             t->separate ? "a target and a charge" : "two charges",
                             t->options.precision == GMXFMM_SINGLE ? " in single precision" : "");
    }
    const long long i = treecode_targets(t)->order[target], j = t->sources.order[nearest];
    return t->separate ? treecode_fail(t, GMXFMM_ERROR_COINCIDENT, "target %lld stands where particle %lld does", i, j)
                       : treecode_fail(t, GMXFMM_ERROR_COINCIDENT,
                                       "particles %lld and %lld are at one place, and both have a charge",
                                       i < j ? i : j, i < j ? j : i);
}
