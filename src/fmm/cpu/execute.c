/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stages of a step in order, and what goes in and comes out. */
#include "fmm/cpu/execute.h"

#include "fmm/cpu/convolution/convolution.h"
#include "fmm/cpu/expansions/expansions.h"
#include "fmm/cpu/near/p2p.h"
#include "fmm/cpu/output.h"
#include "fmm/cpu/particles/particles.h"
#include "fmm/cpu/step.h"

/* Adds the time since *from to *sum and starts anew. */
static void lap(double* from, double* sum)
{
    const double now = fmm_time();
    *sum += now - *from;
    *from = now;
}

/* Locals to potentials and fields of the targets. */
static void local_expansions(const gmxfmm_plan* plan, const fmm_background* background, fmm_wanted wanted)
{
    size_t            stride;
    const void* const locals = plan->cpu->path->locals(plan, &stride);
    fmm_l2p(plan, locals, stride, background, wanted);
}

gmxfmm_status fmm_step(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    gmxfmm_info*     info   = &plan->info;
    const int        field  = output->force != NULL || output->field != NULL;
    const int        phi    = output->potential != NULL || output->want_energy || !field;
    const fmm_wanted wanted = output->want_virial ? FMM_VIRIAL
                              : field && phi      ? FMM_BOTH
                              : field             ? FMM_FIELD
                                                  : FMM_POTENTIAL;
    double near_virial[6] = {0}, virial[6] = {0}, strain[6] = {0}, before[FMM_PARTIAL] = {0}, after[FMM_PARTIAL] = {0};
    double clock = fmm_time();

    fmm_moments m = fmm_permute(plan, &plan->cpu->sources, x, plan->options.array_type);
    if (plan->particles.num_targets > 0)
    {
        m.bad += fmm_permute(plan, &plan->cpu->targets, plan->particles.target_x, GMXFMM_DOUBLE).bad;
    }
    if (m.bad > 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "a position is not finite, or has moved 100 cells since assign");
    }
    lap(&clock, &info->time_permute);

    fmm_p2p(plan, wanted, near_virial);
    if (output->want_virial)
    {
        fmm_particle_sums(plan, before);
    }
    lap(&clock, &info->time_near);

    plan->cpu->path->far(plan, output->want_virial ? strain : NULL);
    clock = fmm_time();

    const fmm_background background = {fmm_is_periodic(plan) ? 2 * FMM_PI / (3 * plan->domain.cells.box_volume) : 0,
                                       plan->charges.total[0],
                                       {m.dipole[0], m.dipole[1], m.dipole[2]},
                                       m.quadrupole[0] + m.quadrupole[1] + m.quadrupole[2]};
    local_expansions(plan, &background, wanted);
    lap(&clock, &info->time_l2p);

    double far = 0;
    if (output->want_energy || output->want_virial)
    {
        fmm_particle_sums(plan, after);
        far = 0.5 * after[7];
    }
    if (output->want_virial)
    {
        for (int i = 0; i < 6; i++)
        {
            after[i] -= before[i];
        }
        fmm_far_virial(plan, after, strain, &m, &background, far, virial);
    }
    fmm_take_far_pairs(plan, &far, virial);
    double surface_field[3] = {0};
    for (int d = 0; d < 3; d++)
    {
        virial[d] += near_virial[d];
        virial[3 + d] += near_virial[3 + d];
        surface_field[d] = plan->options.boundary == GMXFMM_VACUUM
                               ? -4 * FMM_PI / (3 * fmm_determinant(plan->domain.box)) * m.surface[d]
                               : 0;
    }
    fmm_write_sums(plan, 0.5 * after[6], far, virial, m.surface, output);
    const int bad = fmm_write_output(plan, wanted, x, surface_field, output);
    lap(&clock, &info->time_output);
    return bad ? fmm_not_finite(plan, wanted) : GMXFMM_OK;
}
