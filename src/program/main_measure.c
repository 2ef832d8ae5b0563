/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The plan of gmxfmm solve: what is left automatic chosen by errors that are measured on the system in the file. */
#include "main_measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "main_ranks.h"

enum
{
    c_mostTried = 32
};

int main_measure_is_wanted(const main_options* options)
{
    return options->measure != MEASURE_NO;
}

/* To stderr: on stdout are results. */
static void print_tried(const gmxfmm_measurement* tried, int num, int at_targets)
{
    fprintf(stderr, "measured, to %.1g:\n%-10s %5s %15s %10s %12s %12s%s %12s\n", tried[0].uncertainty, "method",
            "order", "cells", "separation", "predicted", "measured", at_targets ? "   at targets" : "", "ms per step");
    for (int i = 0; i < num; i++)
    {
        const gmxfmm_measurement* m = &tried[i];
        char                      cells[64];
        snprintf(cells, sizeof(cells), "%dx%dx%d", m->grid[0], m->grid[1], m->grid[2]);
        fprintf(stderr, "%-10s %5d %15s %10d %12.2e %12.2e", gmxfmm_m2l_name(m->m2l), m->order, cells, m->separation,
                m->predicted_error, m->error);
        if (at_targets)
        {
            fprintf(stderr, " %12.2e", m->error_targets);
        }
        fprintf(stderr, " %12.4g\n", 1e3 * m->time);
    }
}

/* On several ranks, which then make the same calls. */
static gmxfmm_status create_on_ranks(const problem*        all,
                                     main_ranks*           ranks,
                                     gmxfmm_plan**         plan,
                                     const gmxfmm_options* asked,
                                     gmxfmm_measurement*   chosen,
                                     char*                 message,
                                     size_t                size)
{
    const gmxfmm_system system = problem_system(all);
    main_task           task   = {1, 1, system.excl_start != NULL, all->targets.n > 0, *asked, system.box != NULL, {0}};
    if (system.box != NULL)
    {
        memcpy(task.box, system.box, sizeof(task.box));
    }
    const gmxfmm_status status = main_ranks_tell(ranks, &task);
    return status == GMXFMM_OK
               ? gmxfmm_create_parallel_measured(plan, asked, &ranks->comm, &system, chosen, message, size)
               : status;
}

gmxfmm_status main_measure(const problem*      all,
                           const main_options* options,
                           progress*           p,
                           gmxfmm_plan**       plan,
                           gmxfmm_measurement* chosen,
                           char*               message,
                           size_t              size)
{
    const gmxfmm_system system = problem_system(all);
    gmxfmm_options      asked  = options->solve;
    gmxfmm_measurement  tried[c_mostTried];
    int                 num = c_mostTried;
    for (int i = 0; i < c_mostTried; i++)
    {
        tried[i].size = sizeof(tried[i]);
    }
    asked.accuracy = options->accuracy_given ? asked.accuracy : GMXFMM_AUTO;
    *chosen        = (gmxfmm_measurement){.size = sizeof(*chosen), .error = NAN};
    progress_enter(p, STAGE_MEASURE, 0);
    const gmxfmm_status status = options->ranks == NULL
                                     ? gmxfmm_create_measured(plan, &asked, &system, chosen, tried, &num, message, size)
                                     : create_on_ranks(all, options->ranks, plan, &asked, chosen, message, size);
    progress_enter(p, STAGE_NONE, 0);
    if (options->verbose && options->ranks == NULL && num > 0 && tried[0].grid[0] > 0) /* not of a treecode */
    {
        print_tried(tried, num, all->targets.n > 0);
    }
    return status;
}
