/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Relative RMS force error in SPC water over order, grid and ws, beside the error that the library predicts:
 *   accuracy SPC216.GRO [COPIES] > table
 * The reference is the library at order 20 in double precision, which the tests compare with Ewald sums.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gmxfmm.h"
#include "water.h"

static void check(gmxfmm_status status, const char* message)
{
    if (status != GMXFMM_OK)
    {
        fprintf(stderr, "%s: %s\n", gmxfmm_status_text(status), message);
        exit(1);
    }
}

static gmxfmm_info forces(const water* w, const gmxfmm_options* options, double* force)
{
    char         message[256];
    gmxfmm_plan* plan;
    gmxfmm_info  info;
    check(gmxfmm_create(&plan, options, w->n, w->box, message, sizeof(message)), message);
    check(gmxfmm_set_charges(plan, w->n, w->q), gmxfmm_message(plan));
    check(gmxfmm_set_exclusions(plan, w->excl_start, w->excl_list), gmxfmm_message(plan));
    check(gmxfmm_assign(plan, w->x), gmxfmm_message(plan));
    gmxfmm_output out = {.force = force};
    check(gmxfmm_execute(plan, w->x, &out), gmxfmm_message(plan));
    gmxfmm_get_info(plan, &info);
    gmxfmm_destroy(plan);
    return info;
}

static double relative_error(int n, const double* force, const double* reference)
{
    double error = 0, norm = 0;
    for (int i = 0; i < 3 * n; i++)
    {
        error += (force[i] - reference[i]) * (force[i] - reference[i]);
        norm += reference[i] * reference[i];
    }
    return sqrt(error / norm);
}

int main(int argc, char** argv)
{
    if (argc < 2)
    {
        fprintf(stderr, "usage: %s SPC216.GRO [COPIES]\n", argv[0]);
        return 2;
    }
    water   w         = water_read(argv[1], argc > 2 ? atoi(argv[2]) : 2);
    double* reference = malloc((size_t)w.n * 3 * sizeof(double));
    double* force     = malloc((size_t)w.n * 3 * sizeof(double));

    gmxfmm_options options;
    gmxfmm_default_options(&options);
    options.precision  = GMXFMM_DOUBLE;
    options.order      = 20;
    options.separation = 2;
    options.grid[0] = options.grid[1] = options.grid[2] = 5;
    forces(&w, &options, reference);
    printf("# ws cells order precision error predicted near_particles\n");
    for (int ws = 1; ws <= 2; ws++)
    {
        for (int cells = ws == 1 ? 5 : 8; cells <= (ws == 1 ? 9 : 14); cells++)
        {
            for (int order = 2; order <= 16; order += order < 10 ? 1 : 2)
            {
                options.separation = ws;
                options.order      = order;
                options.grid[0] = options.grid[1] = options.grid[2] = cells;
                for (int precision = 0; precision < 2; precision++)
                {
                    options.precision      = precision ? GMXFMM_DOUBLE : GMXFMM_SINGLE;
                    const gmxfmm_info info = forces(&w, &options, force);
                    printf("%d %d %d %s %.3g %.3g %.0f\n", ws, cells, order, precision ? "double" : "single",
                           relative_error(w.n, force, reference), info.predicted_error, info.near_particles);
                }
            }
        }
    }
    free(reference);
    free(force);
    water_free(&w);
    return 0;
}
