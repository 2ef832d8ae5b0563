/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Settings of a large open system by errors at a sample of it. */
#ifndef FMM_SAMPLED_H
#define FMM_SAMPLED_H

#include "fmm/measure/measure.h"

/* Settings that were measured, at most `most`. */
typedef struct
{
    gmxfmm_measurement* item;
    size_t              size; /* of an item of the caller */
    int                 num, most;
} fmm_tried;

/* Makes a plan for the system (fmm_is_sampled), measures it, and assigns it. chooses: the model is asked for one
 * accuracy after another, until what is measured is options->accuracy less a tenth, or at best a third of it; else
 * settings stay as the options have them. *plan: as of fmm_measure_plan. *m: what it reaches, or what came nearest.
 * Errors: as fmm_measure_plan and execute; MEMORY; OPTION: no settings reach the accuracy. */
gmxfmm_status fmm_create_sampled(gmxfmm_plan**         plan,
                                 const gmxfmm_options* options,
                                 const gmxfmm_system*  system,
                                 int                   chooses,
                                 gmxfmm_measurement*   m,
                                 fmm_tried*            tried,
                                 char*                 message,
                                 size_t                size);

#endif
