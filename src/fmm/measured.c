/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The error that was measured of a plan, as long as the plan is what was measured. */
#include "fmm/measured.h"

#include <string.h>

#include "fmm/state.h"

/* An error that was measured is that of extents and edges of cells that differ by less. */
static const double c_change = 0.1;

/* What an error belongs to that is measured of the plan as it is. */
static fmm_measured measured_now(const gmxfmm_plan* plan, double error)
{
    const int*         n    = plan->domain.grid;
    const double*      wide = plan->tuning.extent;
    const fmm_measured now  = {.error           = error,
                               .charges_version = plan->charges.version,
                               .pairs_version   = plan->particles.pairs_version,
                               .order           = plan->far.order,
                               .separation      = plan->domain.separation,
                               .grid            = {n[0], n[1], n[2]},
                               .depth           = fmm_depth(plan),
                               .extent          = {wide[0], wide[1], wide[2]},
                               .edge            = plan->tuning.target_edge};
    return now;
}

void fmm_set_measured_error(gmxfmm_plan* plan, double error, double anywhere, double asked, int zero_forces)
{
    plan->measured             = measured_now(plan, error);
    plan->measured.anywhere    = anywhere;
    plan->measured.asked       = asked;
    plan->measured.zero_forces = zero_forces;
}

/* Whether a length is what it was. */
static int is_like(double now, double then)
{
    return fabs(now - then) <= c_change * then;
}

/* Whether cells are those of a measurement. Along open directions there are as many as particles take: these have to be
 * as far apart as they were. */
static int has_cells_of(const gmxfmm_plan* plan, const fmm_measured* then, const fmm_measured* now)
{
    int same = then->separation == now->separation && then->depth == now->depth && is_like(now->edge, then->edge);
    for (int d = 0; d < 3; d++)
    {
        same = same &&
               (plan->domain.periodic[d] ? then->grid[d] == now->grid[d] : is_like(now->extent[d], then->extent[d]));
    }
    return same;
}

double fmm_measured_error(const gmxfmm_plan* plan)
{
    const fmm_measured *then = &plan->measured, now = measured_now(plan, then->error);
    const int           same_settings = then->order == now.order && has_cells_of(plan, then, &now);
    return same_settings && then->charges_version == now.charges_version && then->pairs_version == now.pairs_version
               ? then->error
               : NAN;
}

double fmm_measured_anywhere(const gmxfmm_plan* plan)
{
    const double error = fmm_measured_error(plan);
    return error >= 0 ? fmax(error, plan->measured.anywhere) : error;
}
