/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a convolution exchanges between the ranks of a step. Each has cells, units, which are planes of cells with a
 * group of coefficients, and columns of frequencies, whatever cells and units it has (fmm_shares): multipoles go from
 * cells to units, which are transformed along y and z, spectra from units to columns, and locals back the same way.
 */
#ifndef FMM_EXCHANGE_H
#define FMM_EXCHANGE_H

#include "fmm/cpu/convolution/convolution.h"

/* Divides so many units and columns evenly among the ranks, where there are several. */
void fmm_conv_share(gmxfmm_plan* plan, int units, int columns);

/* Memory for spectra on their way, where there are several ranks; 0: there is none. */
int fmm_conv_reserve(gmxfmm_plan* plan);
/* The same for multipoles and locals, for the cells as they are shared. Errors: MEMORY. */
gmxfmm_status fmm_conv_reserve_cells(gmxfmm_plan* plan);

/* The columns of this rank of several, in conv->own_columns. */
fmm_columns fmm_conv_own_columns(const gmxfmm_plan* plan);

/* Collective. */
void fmm_conv_multipoles_to_units(gmxfmm_plan* plan);
void fmm_conv_to_columns(gmxfmm_plan* plan);
void fmm_conv_to_planes(gmxfmm_plan* plan);
void fmm_conv_locals_to_cells(gmxfmm_plan* plan);

#endif
