/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Particles without charge that stand where a charge does, as virtual sites may: the two do not interact, but P2P has
 * an infinite potential for them. They are few, and are computed again without what is at their place.
 */
#include "fmm/cpu/near/p2p.h"

#include <float.h>
#include <math.h>

/* Whether target s excludes the source at this place of its cell's list. */
static int is_excluded(const fmm_cpu* cpu, int64_t s, int place)
{
    for (int i = cpu->mask_start[s]; i < cpu->mask_start[s + 1]; i++)
    {
        if (cpu->mask[i] == place)
        {
            return 1;
        }
    }
    return 0;
}

/* Sources this near, in units of u, are at one place but for rounding. */
static const double c_near = 16 * (sizeof(real) == sizeof(double) ? DBL_EPSILON : FLT_EPSILON);

/* Adds the potential and field of a charge q at -d. */
static void add_source(const double* d, double q, double* out)
{
    const double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2], inverse = 1 / sqrt(r2);
    if (q == 0 || r2 < c_near * c_near)
    {
        return;
    }
    out[0] += q * inverse;
    for (int a = 0; a < 3; a++)
    {
        out[1 + a] += q * inverse * inverse * inverse * d[a];
    }
}

static void compute(const gmxfmm_plan* plan, const fmm_arrays* a, int64_t s, double* out)
{
    const fmm_cells*        cells   = &plan->domain.cells;
    const fmm_particle_set* sources = &plan->cpu->sources;
    const int               cell    = sources->cell_of[sources->sorted[s]];
    int                     c[3], place = 0;
    fmm_cell_place(plan, cell, c);
    for (int o = 0; o < cells->num_near; o++)
    {
        const int at = fmm_near_of(plan, cell, c, o);
        for (int j = sources->cell_start[at]; j < sources->cell_start[at + 1]; j++, place++)
        {
            const double* shift = cells->near_shift[o];
            const double  d[3]  = {(double)a->x[s] - ((double)a->x[j] + shift[0]),
                                   (double)a->y[s] - ((double)a->y[j] + shift[1]),
                                   (double)a->z[s] - ((double)a->z[j] + shift[2])};
            if (!is_excluded(plan->cpu, s, place))
            {
                add_source(d, (double)a->q[j], out);
            }
        }
    }
}

void fmm_p2p_uncharged(gmxfmm_plan* plan, fmm_wanted wanted)
{
    const fmm_arrays a         = fmm_arrays_of(&plan->cpu->sources);
    const int        potential = wanted != FMM_FIELD, field = wanted != FMM_POTENTIAL;
    if (plan->particles.num_targets > 0)
    {
        return;
    }
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int64_t s = 0; s < plan->particles.n; s++)
    {
        if (a.q[s] != 0 || isfinite((potential ? a.near_phi[s] : 0) + (field ? a.ex[s] + a.ey[s] + a.ez[s] : 0)))
        {
            continue;
        }
        double out[4] = {0};
        compute(plan, &a, s, out);
        if (potential)
        {
            a.near_phi[s] = (real)out[0];
        }
        if (field)
        {
            a.ex[s] = (real)out[1];
            a.ey[s] = (real)out[2];
            a.ez[s] = (real)out[3];
        }
    }
}
