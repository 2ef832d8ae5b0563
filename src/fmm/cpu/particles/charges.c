/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The charges in the sorted order of the particles. */
#include "fmm/cpu/particles/particles.h"
#include "fmm/cpu/ranks.h"
#include "fmm/math/left.h"
#include "fmm/math/portable.h"

/* Sums over charges of what fmm_left has of the positions at assign. */
static void sum_left(gmxfmm_plan* plan)
{
    const fmm_particle_set* p        = &plan->cpu->sources;
    const fmm_cells*        c        = &plan->domain.cells;
    const int               exponent = plan->far.order + 1;
    const double            scale    = 1 / (FMM_LEFT_A2 * c->lambda * c->lambda);
    const fmm_range         own      = fmm_own_particles(plan, p);
    double                  then = 0, charge2 = 0;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(+ : then, charge2)
    for (int s = own.begin; s < own.end; s++)
    {
        const double at[3] = {(double)p->reference[s][0], (double)p->reference[s][1], (double)p->reference[s][2]};
        const double edge  = fmm_is_adaptive(plan) ? fmm_leaf_edge(plan, p->cell_of[p->sorted[s]]) : 1;
        const double q2    = p->charge[s] * p->charge[s];
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

void fmm_sort_charges(gmxfmm_plan* plan)
{
    const fmm_particle_set* p         = &plan->cpu->sources;
    real*                   q         = p->q;
    int                     uncharged = 0;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(| : uncharged)
    for (int64_t s = 0; s < p->n; s++)
    {
        p->charge[s] = plan->charges.q[p->sorted[s]];
        q[s]         = (real)p->charge[s];
        uncharged |= q[s] == 0;
    }
    plan->cpu->uncharged = uncharged;
    if (plan->options.check != GMXFMM_CHECK_OFF)
    {
        sum_left(plan);
    }
}
