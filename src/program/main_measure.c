/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What gmxfmm solve leaves automatic, chosen by errors that are measured on the system in the file. */
#include "main_measure.h"

#include <math.h>
#include <stdio.h>

#include "text_lines.h"

enum
{
    c_mostTried = 32
};

static int is_wanted(const main_options* options)
{
    const gmxfmm_options* o = &options->solve;
    const int             automatic =
        o->method == GMXFMM_FMM && o->order == GMXFMM_AUTO && o->grid[0] == GMXFMM_AUTO && o->depth == GMXFMM_AUTO;
    /* on a GPU kernels of an octree are compiled, for seconds, for each of the orders that are tried */
    const int is_cheap = o->device == GMXFMM_CPU || o->m2l == GMXFMM_M2L_AUTO || o->m2l == GMXFMM_M2L_FFT;
    return automatic && (options->measure == MEASURE_YES || (options->measure == MEASURE_AUTO && is_cheap));
}

/* To stderr: on stdout are results. */
static void print_tried(const gmxfmm_measurement* tried, int num, double uncertainty)
{
    fprintf(stderr, "measured, to %.1g:\n%-10s %5s %15s %10s %12s %12s %12s\n", uncertainty, "method", "order", "cells",
            "separation", "predicted", "measured", "ms per step");
    for (int i = 0; i < num; i++)
    {
        const gmxfmm_measurement* m = &tried[i];
        char                      cells[64];
        snprintf(cells, sizeof(cells), "%dx%dx%d", m->grid[0], m->grid[1], m->grid[2]);
        fprintf(stderr, "%-10s %5d %15s %10d %12.2e %12.2e %12.4g\n", gmxfmm_m2l_name(m->m2l), m->order, cells,
                m->separation, m->predicted_error, m->error, 1e3 * m->time);
    }
}

static int choose(const gmxfmm_reference* reference,
                  const charge_file*      file,
                  main_options*           options,
                  progress*               p,
                  gmxfmm_measurement*     chosen)
{
    gmxfmm_measurement tried[c_mostTried];
    int                num = c_mostTried;
    char               message[512];
    for (int i = 0; i < c_mostTried; i++)
    {
        tried[i].size = sizeof(tried[i]);
    }
    const gmxfmm_status status =
        gmxfmm_choose(reference, &options->solve, INFINITY, INFINITY, chosen, tried, &num, message, sizeof(message));
    progress_enter(p, STAGE_NONE, 0);
    if (options->verbose)
    {
        print_tried(tried, num, gmxfmm_reference_uncertainty(reference));
    }
    if (status != GMXFMM_OK)
    {
        complain(file->name, 0, "%s", message);
        return -1;
    }
    return 0;
}

int main_measure(const charge_file* file, main_options* options, progress* p, gmxfmm_measurement* chosen)
{
    const gmxfmm_system system = {
        .size = sizeof(system), .n = file->n, .box = file->periodic ? file->box : NULL, .x = file->x, .q = file->q};
    gmxfmm_reference* reference = NULL;
    char              message[512];
    *chosen = (gmxfmm_measurement){.size = sizeof(*chosen), .error = NAN};
    if (!is_wanted(options))
    {
        return 0;
    }
    progress_enter(p, STAGE_MEASURE, 0);
    const gmxfmm_status status =
        gmxfmm_reference_create(&reference, &options->solve, &system, message, sizeof(message));
    if (status != GMXFMM_OK)
    {
        /* what is wrong with the system is found again, and said, by the solve */
        if (status == GMXFMM_ERROR_OPTION && !options->quiet)
        {
            complain(file->name, 0, "note: %s; settings are those of a model of liquids", message);
        }
        return 0;
    }
    const int failed = choose(reference, file, options, p, chosen);
    gmxfmm_reference_destroy(reference);
    return failed;
}
