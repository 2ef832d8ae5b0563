/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cells, and what is made for them, fitted to the box or to the particles. */
#ifndef FMM_FIT_H
#define FMM_FIT_H

#include "fmm/plan.h"

/* Method, order, cells and ws of a periodic system, for the expected number of particles, spread evenly. Errors:
 * OPTION, UNSUPPORTED, MEMORY. */
gmxfmm_status fmm_choose_periodic(gmxfmm_plan* plan);

/* Where the method is automatic: an octree in place of the fft path if particles at x, on the host, leave much of their
 * box (open: of low..high) empty. Once a plan. Errors: OPTION, MEMORY. */
gmxfmm_status fmm_consider_tree(gmxfmm_plan* plan, const void* x, const double* low, const double* high);

/* Makes cells, their arrays and the convolution fit plan->box and plan->inner, if they do not already: cells from
 * scratch, at create and assign. Errors: MEMORY, OPTION. */
gmxfmm_status fmm_update_geometry(gmxfmm_plan* plan);

/* Makes ready for new spectra if those that exist are not of the present shape and near set. Errors: MEMORY, DEVICE. */
gmxfmm_status fmm_shape_changed(gmxfmm_plan* plan);

/* Before particles at *x are assigned: what depends on where they are is chosen, the grid of an open system fitted to
 * them. *x becomes an address that the backend need not copy. Errors: POSITION, MEMORY, DEVICE, UNSUPPORTED. */
gmxfmm_status fmm_fit_particles(gmxfmm_plan* plan, const void** x);

/* Frees arrays, tables and transforms of the cells. */
void fmm_free_grid(gmxfmm_plan* plan);

#endif
