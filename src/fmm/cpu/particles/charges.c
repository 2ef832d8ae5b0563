/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The charges in the sorted order of the particles. */
#include "fmm/cpu/particles/particles.h"
#include "fmm/math/portable.h"

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
}
