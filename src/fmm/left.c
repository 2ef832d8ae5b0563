/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles that have left the cells that they were assigned to. */
#include "fmm/left.h"

#include "fmm/measured.h"
#include "fmm/options.h"
#include "fmm/state.h"
#include "fmm/status.h"

/* Errors may be as many times what was asked: those of molecular dynamics in 10 to 20 steps are up to 1.3 times larger
 * than after an assignment at the accuracy of simulations, and 2 times at 1e-5 (tests/library/left_cells.cpp). Where no
 * accuracy was asked, as many times those after the assignment. */
static const double c_most = 2, c_mostGrowth = 10;

/* Cells, over ws, that a particle may be outside: then it is no farther from the far cells than their own corners. */
static const double c_mostOutside = 0.5;

/* Where all particles move, a pair of them meets from both sides. Errors then grow faster than the sums, with ws = 2
 * less so. Over 370 cases, orders 4 to 13, growth up to 20 is met to a factor of 2. */
static const double c_bend = 0.5;

enum
{
    c_points = 12 /* along each vector of a cell, for the mean over it */
};

int fmm_left_is_checked(const gmxfmm_plan* plan)
{
    return plan->options.check != GMXFMM_CHECK_OFF;
}

/* Mean of w over a cell: midpoints, by inversion those of one half alone; of a brick one eighth. */
static double even_mean(const fmm_cells* c, int exponent)
{
    const int first = c->rectangular ? c_points / 2 : 0;
    double    sum   = 0;
    int       num   = 0;
    for (int i = c_points / 2; i < c_points; i++)
    {
        for (int j = first; j < c_points; j++)
        {
            for (int k = first; k < c_points; k++)
            {
                const double t[3]    = {(i + 0.5) / c_points - 0.5, (j + 0.5) / c_points - 0.5,
                                        (k + 0.5) / c_points - 0.5};
                double       rest[3] = {0, 0, 0}, y[3];
                int          at[3]   = {0, 0, 0};
                fmm_nearest_point(c->cell, c->rectangular ? NULL : c->voronoi, c->voronoi_int, t, at, rest);
                fmm_cartesian(c->cell, rest, y);
                const double y2 = y[0] * y[0] + y[1] * y[1] + y[2] * y[2];
                sum += fmm_left_weight(y2 / (FMM_LEFT_A2 * c->lambda * c->lambda), exponent);
                num++;
            }
        }
    }
    return sum / num;
}

void fmm_left_follow(gmxfmm_plan* plan)
{
    fmm_spread* s = &plan->spread;
    if (fmm_left_is_checked(plan) && (s->cells_version != plan->domain.cells_version || s->order != plan->far.order))
    {
        s->even          = even_mean(&plan->domain.cells, plan->far.order + 1);
        s->cells_version = plan->domain.cells_version;
        s->order         = plan->far.order;
    }
}

/* The accuracy that was asked for, INFINITY if none was: where settings are given it may be the default, which nobody
 * had a use for. */
static double asked_accuracy(const gmxfmm_plan* plan)
{
    const gmxfmm_options* o     = &plan->options;
    const int             given = !fmm_is_auto(o->order) || !fmm_is_auto(o->grid[0]) || !fmm_is_auto(o->depth);
    return plan->measured.charges_version > 0               ? plan->measured.asked
           : given && o->accuracy == fmm_default_accuracy() ? INFINITY
                                                            : o->accuracy;
}

/* Whether all cells are near each other, and no expansion is used. */
static int has_no_far_field(const gmxfmm_plan* plan)
{
    const int *n = plan->domain.grid, ws = plan->domain.separation;
    return !fmm_is_periodic(plan) && plan->domain.tree == NULL && n[0] <= ws + 1 && n[1] <= ws + 1 && n[2] <= ws + 1;
}

fmm_left_limits fmm_left_limits_of(const gmxfmm_plan* plan)
{
    const double    ws = plan->domain.separation, measured = fmm_measured_anywhere(plan);
    const double    error = measured >= 0 ? measured : plan->far.predicted_error;
    const double    asked = asked_accuracy(plan), room = error < asked ? asked / fmax(error, 1e-300) : 1;
    fmm_left_limits limits;
    limits.even         = plan->spread.even;
    limits.bend         = c_bend / (ws * ws);
    limits.most_outside = c_mostOutside * ws;
    limits.most_growth  = isfinite(asked) ? c_most * sqrt(room) : c_mostGrowth;
    if (has_no_far_field(plan))
    {
        limits.most_outside = limits.most_growth = INFINITY;
    }
    return limits;
}

gmxfmm_status fmm_left_lost(gmxfmm_plan* plan, int64_t particle)
{
    return fmm_fail(plan, GMXFMM_ERROR_LEFT,
                    "particle %lld has moved 100 cells since assign: put particles into cells more often",
                    (long long)particle);
}

gmxfmm_status fmm_left_check(gmxfmm_plan* plan, const fmm_left* left, int64_t particle)
{
    const fmm_left_limits limits = fmm_left_limits_of(plan);
    if (plan->options.check != GMXFMM_CHECK_ERROR || !fmm_has_left(&limits, left))
    {
        return GMXFMM_OK;
    }
    if (left->outside > limits.most_outside)
    {
        return fmm_fail(plan, GMXFMM_ERROR_LEFT,
                        "particle %lld is %.3g cells outside its cell, allowed is %g: put particles into cells more "
                        "often (assign), or choose check = report",
                        (long long)particle, left->outside, limits.most_outside);
    }
    return fmm_fail(plan, GMXFMM_ERROR_LEFT,
                    "particle %lld is %.3g of a cell outside its cell. Errors may be %.2g times those after the "
                    "assignment, allowed is %.2g: put particles into cells more often (assign), or choose check = "
                    "report",
                    (long long)particle, left->outside, fmm_left_growth(&limits, left), limits.most_growth);
}
