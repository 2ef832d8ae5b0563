/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Steps of many systems by one plan. */
#include <string.h>

#include "fmm/gmxfmm.h"
#include "fmm/numbers.h"
#include "fmm/sizes.h"
#include "fmm/state.h"
#include "fmm/status.h"

/* Number `first` of an array in the caller's type; NULL of none. */
static void* part_of(const gmxfmm_plan* plan, const void* array, int64_t first)
{
    const size_t word = fmm_word_of(plan->options.array_type);
    return array != NULL ? (char*)array + (size_t)first * word : NULL;
}

/* Excluded pairs, derivatives of charges, dipoles and widths of the plan are of particles by their numbers: another
 * number of them would lose these without a word. */
static gmxfmm_status check_numbers(gmxfmm_plan* plan, const gmxfmm_systems* all)
{
    const int keeps = plan->particles.excl_start != NULL || plan->derivatives.num > 0 ||
                      (fmm_has_dipoles(plan) && all->mu == NULL) || plan->charges.width != NULL;
    if (all->num < 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "num is %lld, a number of systems is 0 or more",
                        (long long)all->num);
    }
    for (int64_t s = 0; s < all->num && keeps; s++)
    {
        const int64_t n = all->start[s + 1] - all->start[s];
        if (n != plan->particles.n)
        {
            return fmm_fail(plan, GMXFMM_ERROR_OPTION,
                            "system %lld has %lld particles, and the plan has excluded pairs, charge derivatives, "
                            "dipoles or widths of %lld: set none, or give systems of as many",
                            (long long)s, (long long)n, (long long)plan->particles.n);
        }
    }
    return GMXFMM_OK;
}

static gmxfmm_status execute_system(gmxfmm_plan* plan, gmxfmm_systems* all, int64_t s)
{
    const int64_t first = all->start[s], n = all->start[s + 1] - first;
    const void*   x      = part_of(plan, all->x, 3 * first);
    gmxfmm_output output = {.size           = sizeof(output),
                            .force          = part_of(plan, all->force, 3 * first),
                            .field          = part_of(plan, all->field, 3 * first),
                            .potential      = part_of(plan, all->potential, first),
                            .want_energy    = all->energy != NULL,
                            .want_virial    = all->virial != NULL,
                            .torque         = part_of(plan, all->torque, 3 * first),
                            .field_gradient = part_of(plan, all->field_gradient, 6 * first)};
    gmxfmm_status status = gmxfmm_set_charges(plan, n, part_of(plan, all->q, first));
    status               = status == GMXFMM_OK && all->box != NULL ? gmxfmm_set_box(plan, all->box + 9 * s) : status;
    status = status == GMXFMM_OK && all->mu != NULL ? gmxfmm_set_dipoles(plan, n, part_of(plan, all->mu, 3 * first))
                                                    : status;
    status = status == GMXFMM_OK ? gmxfmm_assign(plan, x) : status;
    status = status == GMXFMM_OK ? gmxfmm_execute(plan, x, &output) : status;
    if (status == GMXFMM_OK && all->energy != NULL)
    {
        all->energy[s] = output.energy_near + output.energy_far;
    }
    if (status == GMXFMM_OK && all->virial != NULL)
    {
        memcpy(all->virial + 9 * s, output.virial, sizeof(output.virial));
    }
    return status;
}

gmxfmm_status gmxfmm_execute_systems(gmxfmm_plan* plan, gmxfmm_systems* systems)
{
    if (plan == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    if (systems == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_NULL, "systems is NULL");
    }
    gmxfmm_status status = fmm_check_size(plan, systems, sizeof(*systems), "gmxfmm_systems");
    if (status != GMXFMM_OK)
    {
        return status;
    }
    systems->done = 0;
    if (systems->num > 0 && (systems->start == NULL || systems->x == NULL || systems->q == NULL))
    {
        return fmm_fail(plan, GMXFMM_ERROR_NULL, "start, x or q is NULL");
    }
    if (plan->particles.num_targets > 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "the plan has targets, which are of one system: set none");
    }
    status = check_numbers(plan, systems);
    while (status == GMXFMM_OK && systems->done < systems->num)
    {
        status = execute_system(plan, systems, systems->done);
        systems->done += status == GMXFMM_OK;
    }
    return status;
}
