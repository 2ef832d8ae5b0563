/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A step on the CPU: its stages in order. */
#include "fmm/cpu/execute.h"

#include <math.h>
#include <string.h>

#include "fmm/cpu/convolution/convolution.h"
#include "fmm/cpu/expansions/expansions.h"
#include "fmm/cpu/near/p2p.h"
#include "fmm/cpu/near/widths.h"
#include "fmm/cpu/output.h"
#include "fmm/cpu/particles/particles.h"
#include "fmm/cpu/ranks.h"
#include "fmm/cpu/step.h"
#include "fmm/left.h"
#include "fmm/numbers.h"

/* Charges in the order of the particles, where these or those are new. */
static void follow_charges(gmxfmm_plan* plan)
{
    fmm_cpu* cpu = plan->cpu;
    if (cpu->charges_version != plan->charges.version || cpu->order_version != plan->particles.version)
    {
        fmm_sort_charges(plan);
        cpu->charges_version = plan->charges.version;
        cpu->order_version   = plan->particles.version;
    }
}

/* Spectra of the lattice sums, where the shape of the cells is new. */
static void follow_shape(gmxfmm_plan* plan, int with_virial)
{
    double clock = fmm_time();
    if (plan->cpu->conv != NULL)
    {
        fmm_conv_spectra(plan, with_virial);
        fmm_lap(&clock, &plan->info.time_spectra);
    }
}

/* The error of positions of which one has no expansion. */
static gmxfmm_status bad_position(gmxfmm_plan* plan, const void* x)
{
    if (plan->cpu->shares.bad_elsewhere) /* the rank where it is says what it is */
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "%s", "");
    }
    for (int64_t i = 0; i < plan->particles.n; i++)
    {
        double xi[3];
        for (int d = 0; d < 3; d++)
        {
            xi[d] = fmm_number_of(x, plan->options.array_type, 3 * i + d);
        }
        if (!isfinite(xi[0]) || !isfinite(xi[1]) || !isfinite(xi[2]))
        {
            return fmm_fail(plan, GMXFMM_ERROR_POSITION, "position of particle %lld is (%g, %g, %g): not finite",
                            fmm_particle_name(plan, i), xi[0], xi[1], xi[2]);
        }
    }
    const fmm_particle_set* p    = &plan->cpu->sources;
    const fmm_arrays        a    = fmm_arrays_of(p);
    double                  most = 0;
    int64_t                 lost = 0;
    for (int64_t s = 0; s < p->n; s++)
    {
        const double far_away = fmax(fabs((double)a.x[s]), fmax(fabs((double)a.y[s]), fabs((double)a.z[s])));
        lost                  = far_away > most ? p->sorted[s] : lost;
        most                  = fmax(far_away, most);
    }
    return most > 99 * plan->domain.cells.lambda
               ? fmm_left_lost(plan, fmm_particle_name(plan, lost))
               : fmm_fail(plan, GMXFMM_ERROR_POSITION, "a position is not finite, or too far away");
}

/* Positions and moments of charges and targets. Errors: POSITION, LEFT. */
static gmxfmm_status permute(gmxfmm_plan* plan, const void* x, fmm_moments* m, double* outside)
{
    *m = fmm_permute(plan, &plan->cpu->sources, x, plan->options.array_type);
    if (plan->particles.num_targets > 0)
    {
        m->bad += fmm_permute(plan, &plan->cpu->targets, plan->particles.target_x, GMXFMM_DOUBLE).bad;
    }
    const fmm_left left = {m->left_now, plan->cpu->left_then, plan->cpu->left_charge2, fmm_left_outside(m->largest)};
    *outside            = m->bad > 0 ? INFINITY : left.outside;
    return m->bad > 0 ? bad_position(plan, x) : fmm_left_check(plan, &left, (int64_t)m->farthest);
}

/* Tin-foil: what all potentials have added (THEORY (16)); nothing in open space, nor in a slab. */
static fmm_background background_of(const gmxfmm_plan* plan, const fmm_moments* m)
{
    const fmm_background b = {fmm_is_bulk(plan) ? 2 * FMM_PI / (3 * plan->domain.cells.box_volume) : 0,
                              plan->charges.total[0],
                              {m->dipole[0], m->dipole[1], m->dipole[2]},
                              m->quadrupole[0] + m->quadrupole[1] + m->quadrupole[2]};
    return b;
}

/* Locals to potentials and fields of the targets. */
static void local_expansions(const gmxfmm_plan* plan, const fmm_background* background, fmm_wanted wanted)
{
    size_t stride;
    if (fmm_is_adaptive(plan))
    {
        fmm_l2p_leaves(plan, wanted);
        return;
    }
    const void* const locals = plan->cpu->path->locals(plan, &stride);
    fmm_l2p(plan, locals, stride, background, wanted);
}

/* Local expansions are added to what is there. */
static void clear_fields(const gmxfmm_plan* plan)
{
    const fmm_arrays a     = fmm_arrays_of(fmm_targets(plan));
    const size_t     bytes = (size_t)fmm_targets(plan)->n * sizeof(real);
    memset(a.ex, 0, bytes);
    memset(a.ey, 0, bytes);
    memset(a.ez, 0, bytes);
    for (int i = 0; i < 6 && fmm_has_dipoles(plan); i++)
    {
        memset(fmm_targets(plan)->gradient[i], 0, bytes);
    }
}

/* Forces on dipoles need the gradient of the field, and their energies the field. */
static fmm_wanted wanted_of_dipoles(const gmxfmm_output* output)
{
    const int field = output->field != NULL || output->torque != NULL || output->want_energy;
    return output->want_virial                                       ? FMM_VIRIAL
           : output->force != NULL || output->field_gradient != NULL ? FMM_GRADIENT
           : field                                                   ? FMM_BOTH
                                                                     : FMM_POTENTIAL;
}

static fmm_wanted wanted_of(const gmxfmm_output* output)
{
    const int field = output->force != NULL || output->field != NULL;
    const int phi   = output->potential != NULL || output->want_energy || output->charge_gradient != NULL || !field;
    return output->want_virial ? FMM_VIRIAL : field && phi ? FMM_BOTH : field ? FMM_FIELD : FMM_POTENTIAL;
}

static void near_field(gmxfmm_plan* plan, fmm_wanted wanted, fmm_step_sums* sums)
{
    double clock = fmm_time();
    fmm_p2p(plan, wanted, sums->near_virial);
    if (fmm_has_widths(plan))
    {
        fmm_widths(plan, wanted, sums->near_virial);
    }
    if (sums->apart && !fmm_far_is_first(plan, wanted))
    {
        fmm_particle_sums(plan, sums->first);
    }
    fmm_lap_alone(plan, &clock, &plan->info.time_near);
}

/* Whether all particles of an open system are in one cell, and so near to one another. */
static int all_are_near(const gmxfmm_plan* plan)
{
    const fmm_cells* c = &plan->domain.cells;
    return plan->cpu->conv != NULL && !fmm_has_images(c->periodic) && c->inner[0] == 1 && c->inner[1] == 1 &&
           c->inner[2] == 1;
}

static void far_field(gmxfmm_plan* plan, fmm_wanted wanted, fmm_step_sums* sums)
{
    const int first = fmm_far_is_first(plan, wanted);
    if (all_are_near(plan))
    {
        memset(fmm_arrays_of(fmm_targets(plan)).far_phi, 0, (size_t)fmm_targets(plan)->n * sizeof(real));
        if (first)
        {
            clear_fields(plan);
            fmm_particle_sums(plan, sums->first);
        }
        return;
    }
    plan->cpu->path->far(plan, wanted == FMM_VIRIAL ? sums->strain : NULL); /* adds up times of its own */

    double clock = fmm_time();
    if (first)
    {
        clear_fields(plan);
    }
    local_expansions(plan, &sums->background, wanted);
    if (first)
    {
        fmm_particle_sums(plan, sums->first);
    }
    fmm_lap_alone(plan, &clock, &plan->info.time_l2p);
}

gmxfmm_status fmm_step(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    gmxfmm_info*     info    = &plan->info;
    const int        dipoles = fmm_has_dipoles(plan);
    const fmm_wanted wanted  = dipoles ? wanted_of_dipoles(output) : wanted_of(output);
    fmm_step_sums    sums;
    memset(&sums, 0, sizeof(sums));
    sums.apart               = output->want_virial || (dipoles && output->want_energy);
    plan->cpu->shares.failed = 0;
    follow_charges(plan);
    follow_shape(plan, output->want_virial);

    double clock               = fmm_time();
    plan->cpu->shares.waited   = 0;
    const gmxfmm_status status = permute(plan, x, &sums.moments, &output->outside);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    sums.background = background_of(plan, &sums.moments);
    fmm_lap_alone(plan, &clock, &info->time_permute);

    const int far_first = fmm_far_is_first(plan, wanted);
    if (!far_first)
    {
        near_field(plan, wanted, &sums);
    }
    far_field(plan, wanted, &sums);
    if (far_first)
    {
        near_field(plan, wanted, &sums);
    }

    clock                       = fmm_time();
    const gmxfmm_status written = fmm_output(plan, wanted, x, &sums, output);
    fmm_lap_alone(plan, &clock, &info->time_output);
    return plan->cpu->shares.failed ? GMXFMM_ERROR_COMM : written;
}
