/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The charges and dipoles in the sorted order of the particles. */
#include <math.h>
#include <string.h>

#include "fmm/cpu/particles/particles.h"
#include "fmm/cpu/ranks.h"
#include "fmm/math/left.h"
#include "fmm/math/portable.h"

/* Sums over charges of what fmm_left has of the positions at assign. A dipole errs by one power of |y| less than a
 * charge, and p + 1 times as much: at the distance a it is as good as a charge of (p + 1) |mu| / a, which is what it
 * counts as everywhere. */
static void sum_left(gmxfmm_plan* plan)
{
    const fmm_particle_set* p        = &plan->cpu->sources;
    const fmm_cells*        c        = &plan->domain.cells;
    const int               exponent = plan->far.order + 1;
    const double            scale    = 1 / (FMM_LEFT_A2 * c->lambda * c->lambda);
    const fmm_range         own      = fmm_own_particles(plan, p);
    const double            a = c->edge * sqrt(FMM_LEFT_A2), as_charge = exponent / a;
    const int               dipoles = fmm_has_dipoles(plan);
    double                  then = 0, charge2 = 0;
    plan->cpu->left_dipole = as_charge * as_charge;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(+ : then, charge2)
    for (int s = own.begin; s < own.end; s++)
    {
        const double at[3] = {(double)p->reference[s][0], (double)p->reference[s][1], (double)p->reference[s][2]};
        const double edge  = fmm_is_adaptive(plan) ? fmm_leaf_edge(plan, p->cell_of[p->sorted[s]]) : 1;
        const double q2 = p->charge[s] * p->charge[s] + (dipoles ? fmm_left_dipole(plan, p->dipole + 3 * s, edge) : 0);
        double       y[3];
        fmm_cartesian(c->cell, at, y);
        then += q2 * fmm_left_weight((y[0] * y[0] + y[1] * y[1] + y[2] * y[2]) * scale / (edge * edge), exponent);
        charge2 += q2;
    }
    double sums[2] = {then, charge2};
    fmm_sum_over_ranks(plan, sums, 2);
    plan->cpu->left_then    = sums[0];
    plan->cpu->left_charge2 = sums[1];
}

/* Returns whether any particle has neither charge nor dipole, now that charges are sorted; *some: whether any has a
 * dipole. */
static int sort_dipoles(const gmxfmm_plan* plan, int* some)
{
    const fmm_particle_set* p    = &plan->cpu->sources;
    int                     none = 0, has = 0;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(| : none, has)
    for (int64_t s = 0; s < p->n; s++)
    {
        const double* mu = plan->charges.mu + 3 * (size_t)p->sorted[s];
        memcpy(p->dipole + 3 * s, mu, 3 * sizeof(*mu));
        const int zero = mu[0] == 0 && mu[1] == 0 && mu[2] == 0;
        none |= p->charge[s] == 0 && zero;
        has |= !zero;
    }
    *some = has;
    return none;
}

void fmm_sort_charges(gmxfmm_plan* plan)
{
    const fmm_particle_set* p         = &plan->cpu->sources;
    real*                   q         = p->q;
    int                     uncharged = 0, some = 0;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(| : uncharged)
    for (int64_t s = 0; s < p->n; s++)
    {
        p->charge[s] = plan->charges.q[p->sorted[s]];
        q[s]         = (real)p->charge[s];
        uncharged |= q[s] == 0;
    }
    if (fmm_has_dipoles(plan))
    {
        uncharged = sort_dipoles(plan, &some);
    }
    plan->cpu->uncharged  = uncharged;
    plan->cpu->no_dipoles = !some;
    if (plan->options.check != GMXFMM_CHECK_OFF)
    {
        sum_left(plan);
    }
}
