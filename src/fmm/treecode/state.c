/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the stages of the treecode share: errors, memory of an assign, and the unit of length. */
#include "fmm/treecode/state.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Powers of a length in the kernels' table. */
#define POWERS_ROW(name, value, first, second, third) {value, {first, second, third}},
static const struct
{
    int value, parameter[TREECODE_PARAMETERS];
} c_powers[TREECODE_NUM_KERNELS] = {TREECODE_KERNELS(POWERS_ROW)};

gmxfmm_status treecode_fail(treecode* t, gmxfmm_status status, const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(t->message, sizeof(t->message), format, arguments);
    va_end(arguments);
    return status;
}

void treecode_free_assigned(treecode* t)
{
    treecode_clusters_free(&t->sources);
    treecode_clusters_free(&t->own_targets);
    treecode_lists_free(&t->lists);
    treecode_lists_free(&t->point_lists);
    free(t->sorted_q);
    free(t->charge);
    free(t->point);
    free(t->phi);
    free(t->scratch);
    for (int d = 0; d < 3; d++)
    {
        free(t->slope[d]);
        t->slope[d] = NULL;
    }
    t->sorted_q = t->charge = t->point = t->phi = NULL;
    t->scratch                                  = NULL;
    t->assigned                                 = 0;
    t->imported                                 = 0;
    t->num_points                               = 0;
}

gmxfmm_status treecode_not_finite(treecode* t, const char* what, int64_t which)
{
    return treecode_fail(t, GMXFMM_ERROR_POSITION, "the position of %s %lld is not finite", what, (long long)which);
}

gmxfmm_status treecode_no_memory(treecode* t)
{
    treecode_free_assigned(t);
    return treecode_fail(t, GMXFMM_ERROR_MEMORY, "out of memory for %lld particles", (long long)t->n);
}

treecode_criterion treecode_criterion_of(const treecode* t)
{
    const treecode_criterion c = {treecode_targets(t),    &t->sources,       t->options.theta, t->options.degree,
                                  t->options.num_threads, treecode_widens(t)};
    return c;
}

double treecode_value_factor(const treecode* t, int field)
{
    const double unit = pow(t->unit, c_powers[t->options.kernel].value);
    return t->options.prefactor * (field ? unit / t->unit : unit);
}

void treecode_set_unit(treecode* t, double unit)
{
    t->unit = unit;
    for (int i = 0; i < TREECODE_PARAMETERS; i++)
    {
        t->parameter[i] = t->options.parameter[i] * pow(t->unit, c_powers[t->options.kernel].parameter[i]);
    }
}
