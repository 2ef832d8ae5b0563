/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The far field of a plan: its order, its arrays, and the shape that lattice sums are of. Nothing else writes it. */
#ifndef FMM_FAR_FIELD_H
#define FMM_FAR_FIELD_H

#include "fmm/gmxfmm.h"

/* Way through it, order, and the error that a model predicts. */
void fmm_far_set(gmxfmm_plan* plan, gmxfmm_m2l m2l, int order, double predicted_error);

/* Makes arrays, tables and transforms fit the domain's cells, which were made, and then their shape. Errors: MEMORY,
 * OPTION, UNSUPPORTED, DEVICE. */
gmxfmm_status fmm_far_follow(gmxfmm_plan* plan);

/* The cells have another shape, perhaps: if spectra that exist, or are to be made, are not of it and of the near set,
 * new ones are made ready. Errors: MEMORY, DEVICE. */
gmxfmm_status fmm_far_set_shape(gmxfmm_plan* plan);

/* Frees arrays, tables and transforms. */
void fmm_far_free(gmxfmm_plan* plan);

#endif
