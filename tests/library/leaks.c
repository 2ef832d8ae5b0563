/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Everything once, failures too, for a memory checker to watch. Exit status 0 if all calls did what they should. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gmxfmm.h"

#define N 60

static int wrong;

static void expect(const char* what, gmxfmm_status got, gmxfmm_status wanted)
{
    if (got != wanted)
    {
        printf("%s: %s instead of %s\n", what, gmxfmm_status_text(got), gmxfmm_status_text(wanted));
        wrong = 1;
    }
}

/* Any numbers in [0, 1) that are not regular. */
static double fraction(int i, int d)
{
    const double v = 1000 * sin(12.9898 * i + 78.233 * d);
    return v - floor(v);
}

static void run(gmxfmm_plan* plan, const double* x, const double* q, const int* start, const int* list)
{
    double        force[3 * N], field[3 * N], potential[N];
    gmxfmm_output output = {.force = force, .field = field, .potential = potential, .want_energy = 1, .want_virial = 1};

    expect("set_charges", gmxfmm_set_charges(plan, N, q), GMXFMM_OK);
    expect("set_exclusions", gmxfmm_set_exclusions(plan, start, list), GMXFMM_OK);
    expect("assign", gmxfmm_assign(plan, x), GMXFMM_OK);
    expect("execute", gmxfmm_execute(plan, x, &output), GMXFMM_OK);
    expect("fewer charges", gmxfmm_set_charges(plan, N / 2, q), GMXFMM_OK);
    expect("assign again", gmxfmm_assign(plan, x), GMXFMM_OK);
    expect("execute again", gmxfmm_execute(plan, x, &output), GMXFMM_OK);
}

/* The octree: its levels come and go with the particles, targets that are no charges too. */
static void run_octree(gmxfmm_options options, const double* x, const double* q, const int* start, const int* list)
{
    const double  box[9] = {3, 0, 0, 0, 3.1, 0, 0, 0, 5};
    double        potential[N], field[3 * N];
    gmxfmm_output output = {.field = field, .potential = potential};
    gmxfmm_plan*  plan   = NULL;
    char          message[64];

    options.m2l_to_parent = options.m2l_truncate = 1;
    for (int m2l = GMXFMM_M2L_ROTATION; m2l <= GMXFMM_M2L_NAIVE; m2l++)
    {
        options.m2l       = (gmxfmm_m2l)m2l;
        options.boundary  = m2l == GMXFMM_M2L_NAIVE ? GMXFMM_OPEN : GMXFMM_TINFOIL;
        options.precision = m2l == GMXFMM_M2L_ROTATION ? GMXFMM_SINGLE : GMXFMM_DOUBLE;
        if (m2l == GMXFMM_M2L_DYNAMIC)
        {
            expect("dynamic", gmxfmm_create(&plan, &options, N, box, message, sizeof(message)),
                   GMXFMM_ERROR_UNSUPPORTED);
            continue;
        }
        expect("create octree", gmxfmm_create(&plan, &options, N, box, message, sizeof(message)), GMXFMM_OK);
        run(plan, x, q, start, list);
        expect("no exclusions", gmxfmm_set_exclusions(plan, NULL, NULL), GMXFMM_OK);
        for (int targets = 0; targets <= N / 2; targets += N / 4) /* run leaves half the charges */
        {
            expect("set_targets", gmxfmm_set_targets(plan, targets, x + 3 * (N / 2)), GMXFMM_OK);
            expect("assign with targets", gmxfmm_assign(plan, x), GMXFMM_OK);
            expect("execute with targets", gmxfmm_execute(plan, x, &output), GMXFMM_OK);
        }
        gmxfmm_destroy(plan);
    }
}

int main(void)
{
    double         box[9] = {3, 0, 0, 0.4, 3.1, 0, -0.3, 0.5, 2.8};
    double         x[3 * N], q[N];
    int            start[N + 1], list[2] = {1, 0};
    gmxfmm_options options;
    gmxfmm_plan*   plan = NULL;
    char           message[64];

    for (int i = 0; i < N; i++)
    {
        for (int d = 0; d < 3; d++)
        {
            x[3 * i + d] = 3 * fraction(i, d);
        }
        q[i]         = i % 2 ? -1 : 1;
        start[i + 1] = i == 0 ? 1 : 2;
    }
    start[0] = 0;

    gmxfmm_default_options(&options);
    options.num_threads  = 1;
    options.reproducible = 1;
    for (int boundary = GMXFMM_TINFOIL; boundary <= GMXFMM_OPEN; boundary++)
    {
        options.boundary  = (gmxfmm_boundary)boundary;
        options.precision = boundary == GMXFMM_VACUUM ? GMXFMM_DOUBLE : GMXFMM_SINGLE;
        expect("create", gmxfmm_create(&plan, &options, N, box, message, sizeof(message)), GMXFMM_OK);
        run(plan, x, q, start, list);
        box[4] = 3.2;
        if (boundary != GMXFMM_OPEN)
        {
            expect("set_box", gmxfmm_set_box(plan, box), GMXFMM_OK);
        }
        run(plan, x, q, start, list);
        list[0] = N;
        expect("exclusion out of range", gmxfmm_set_exclusions(plan, start, list), GMXFMM_ERROR_EXCLUSION);
        list[0] = 1;
        gmxfmm_destroy(plan);
    }
    run_octree(options, x, q, start, list);
    options.order = 41;
    expect("order 41", gmxfmm_create(&plan, &options, N, box, message, sizeof(message)), GMXFMM_ERROR_OPTION);
    options.order    = -1;
    options.boundary = GMXFMM_TINFOIL;
    box[8]           = 0;
    expect("singular box", gmxfmm_create(&plan, &options, N, box, message, sizeof(message)), GMXFMM_ERROR_BOX);
    return wrong;
}
