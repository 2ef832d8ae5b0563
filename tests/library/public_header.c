/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The public headers alone, as strict C11, and every function in them linked; the C++ tests include them as C++. */
#include "gmxfmm_measure.h"
#include "gmxfmm_parallel.h"
#include "gmxfmm_sites.h"

#include <stdio.h>
#include <string.h>

typedef void function(void);

/* Those that are not called below. */
static function* const c_others[] = {
    (function*)gmxfmm_find_option,
    (function*)gmxfmm_check_device,
    (function*)gmxfmm_set_targets,
    (function*)gmxfmm_execute_systems,
    (function*)gmxfmm_execute_along,
    (function*)gmxfmm_enqueue,
    (function*)gmxfmm_enqueue_along,
    (function*)gmxfmm_enqueue_assign,
    (function*)gmxfmm_enqueue_box,
    (function*)gmxfmm_enqueue_charges,
    (function*)gmxfmm_time_stages,
    (function*)gmxfmm_set_first_share,
    (function*)gmxfmm_create_measured,
    (function*)gmxfmm_reference_create,
    (function*)gmxfmm_reference_uncertainty,
    (function*)gmxfmm_reference_destroy,
    (function*)gmxfmm_measure,
    (function*)gmxfmm_choose,
    (function*)gmxfmm_create_parallel,
    (function*)gmxfmm_create_parallel_measured,
    (function*)gmxfmm_threads_create,
    (function*)gmxfmm_threads_comm,
    (function*)gmxfmm_threads_destroy,
    (function*)gmxfmm_sites_create,
    (function*)gmxfmm_sites_set_targets,
    (function*)gmxfmm_sites_search,
    (function*)gmxfmm_sites_execute,
    (function*)gmxfmm_sites_enqueue_box,
    (function*)gmxfmm_sites_enqueue,
    (function*)gmxfmm_sites_enqueue_forces,
    (function*)gmxfmm_sites_constant,
    (function*)gmxfmm_sites_get_info,
    (function*)gmxfmm_sites_message,
    (function*)gmxfmm_sites_destroy,
};

int main(void)
{
    const double   box[9] = {2, 0, 0, 0, 2, 0, 0, 0, 2}, x[6] = {0, 0, 0, 1, 0.5, 0.25}, q[2] = {1, -1};
    const int      start[3] = {0, 0, 0}, list[1] = {0};
    double         force[6];
    gmxfmm_output  output = {.size = sizeof(output), .force = force, .want_energy = 1};
    gmxfmm_options options;
    gmxfmm_info    info = {.size = sizeof(info)};
    gmxfmm_plan*   plan = NULL;

    gmxfmm_default_options(&options);
    if (gmxfmm_create(&plan, &options, 2, box, NULL, 0) != GMXFMM_OK || gmxfmm_set_box(plan, box) != GMXFMM_OK ||
        gmxfmm_set_charges(plan, 2, q) != GMXFMM_OK || gmxfmm_set_exclusions(plan, start, list) != GMXFMM_OK ||
        gmxfmm_assign(plan, x) != GMXFMM_OK || gmxfmm_execute(plan, x, &output) != GMXFMM_OK ||
        gmxfmm_get_info(plan, &info) != GMXFMM_OK)
    {
        printf("a call failed: %s\n", plan ? gmxfmm_message(plan) : "create");
        return 1;
    }
    char version[32];
    snprintf(version, sizeof(version), "%d.%d.%d", GMXFMM_VERSION_MAJOR, GMXFMM_VERSION_MINOR, GMXFMM_VERSION_PATCH);
    if (strcmp(version, GMXFMM_VERSION) != 0 || strcmp(version, gmxfmm_version()) != 0)
    {
        printf("the header is of version %s or %s, the library of %s\n", version, GMXFMM_VERSION, gmxfmm_version());
        return 1;
    }
    for (size_t i = 0; i < sizeof(c_others) / sizeof(c_others[0]); i++)
    {
        if (c_others[i] == NULL)
        {
            return 1;
        }
    }
    const unsigned can = gmxfmm_capabilities(plan);
    if ((can & GMXFMM_CAN_VIRIAL) == 0 || (can & GMXFMM_CAN_ENQUEUE) != 0 || gmxfmm_graph_version(plan) == 0)
    {
        printf("capabilities are %u, graphs have version %lld\n", can, (long long)gmxfmm_graph_version(plan));
        return 1;
    }
    gmxfmm_reset_times(plan);
    gmxfmm_destroy(plan);
    /* opposite charges attract: the force on the first points to the second or its image */
    return !(output.energy_near + output.energy_far < 0) || strcmp(gmxfmm_m2l_name(info.m2l), "fft") != 0 ||
           strcmp(gmxfmm_status_text(GMXFMM_OK), "") == 0;
}
