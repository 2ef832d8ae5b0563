/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program of somebody else's: Madelung's constant of rock salt, the error of its forces, and that headers and library
 * are of one version. */
#include <gmxfmm.h>
#include <gmxfmm_measure.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    enum
    {
        c_edge = 4,
        c_num  = c_edge * c_edge * c_edge
    };
    const double box[9] = {c_edge, 0, 0, 0, c_edge, 0, 0, 0, c_edge};
    double       x[3 * c_num], q[c_num];
    for (int i = 0; i < c_num; i++)
    {
        const int at[3] = {i / (c_edge * c_edge), i / c_edge % c_edge, i % c_edge};
        for (int d = 0; d < 3; d++)
        {
            x[3 * i + d] = at[d];
        }
        q[i] = (at[0] + at[1] + at[2]) % 2 == 0 ? 1 : -1;
    }

    gmxfmm_options options;
    gmxfmm_default_options(&options);
    options.precision = GMXFMM_DOUBLE;
    options.accuracy  = 1e-8;
    char          message[256];
    gmxfmm_plan*  plan   = NULL;
    gmxfmm_output output = {.size = sizeof(output), .want_energy = 1};
    gmxfmm_status status = gmxfmm_create(&plan, &options, c_num, box, message, sizeof(message));
    status               = status == GMXFMM_OK ? gmxfmm_set_charges(plan, c_num, q) : status;
    status               = status == GMXFMM_OK ? gmxfmm_assign(plan, x) : status;
    status               = status == GMXFMM_OK ? gmxfmm_execute(plan, x, &output) : status;
    if (status != GMXFMM_OK)
    {
        fprintf(stderr, "%s\n", plan != NULL ? gmxfmm_message(plan) : message);
        return 1;
    }
    const double madelung = -2 * (output.energy_near + output.energy_far) / c_num;
    gmxfmm_destroy(plan);

    const gmxfmm_system system    = {.size = sizeof(system), .n = c_num, .box = box, .x = x, .q = q};
    gmxfmm_reference*   reference = NULL;
    gmxfmm_measurement  measured  = {.size = sizeof(measured)};
    status                        = gmxfmm_reference_create(&reference, &options, &system, message, sizeof(message));
    status = status == GMXFMM_OK ? gmxfmm_measure(reference, &options, 0, &measured, message, sizeof(message)) : status;
    gmxfmm_reference_destroy(reference);
    if (status != GMXFMM_OK)
    {
        fprintf(stderr, "%s\n", message);
        return 1;
    }
    printf("gmxfmm %s: Madelung's constant of NaCl is %.7f; error of forces %.1e at order %d\n", gmxfmm_version(),
           madelung, measured.error, measured.order);
    return !(fabs(madelung - 1.7475646) < 1e-6 && measured.error < 1e-6 && measured.order > 0 &&
             strcmp(gmxfmm_version(), GMXFMM_VERSION) == 0);
}
