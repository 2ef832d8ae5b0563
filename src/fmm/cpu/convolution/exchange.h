/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Spectra between the ranks of a step: each transforms its planes along y and z, and its columns along x. */
#ifndef FMM_EXCHANGE_H
#define FMM_EXCHANGE_H

#include "fmm/cpu/convolution/convolution.h"

/* Memory for what travels, where there are several ranks. Errors: MEMORY. */
gmxfmm_status fmm_conv_reserve(gmxfmm_plan* plan);

/* Of spectra of whole planes, those of the own layers, to whole columns, those of the own rows y; and back. Collective;
 * nothing on one rank. */
void fmm_conv_to_columns(gmxfmm_plan* plan);
void fmm_conv_to_planes(gmxfmm_plan* plan);

#endif
